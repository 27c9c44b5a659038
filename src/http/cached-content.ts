import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { emptyStream } from './responses.ts'
import { weakMatch } from './conditional-requests.ts'

/** A text with its entity tag. */
interface CachedContent { text: string, etag: string }

/** A text that is made when it is first asked for, and then kept. */
export function cachedContent (make: () => string): () => CachedContent {
  let made: CachedContent | undefined
  return () => {
    made ??= withETag(make())
    return made
  }
}

export function withETag (text: string): CachedContent {
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` }
}

/** 200, or 304 to who has it; it may be stored, but only be used after asking whether it changed. */
export function sendCached ({ headers, method }: FastifyRequest, reply: FastifyReply, type: string, { text, etag }: { text: string | Buffer, etag: string }): FastifyReply {
  reply.headers({ 'cache-control': 'no-cache', etag })
  const known = headers['if-none-match']
  if (known !== undefined && weakMatch(known, etag)) return reply.code(304).send(method === 'HEAD' ? emptyStream() : undefined)
  return reply.header('content-type', type).send(text)
}
