import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { emptyStream } from './responses.ts'
import { isNotModified, parseConditions } from './conditional-requests.ts'

/** Text with its entity tag. */
export interface CachedContent { text: string, etag: string }

/** Returns a function that makes a text at its first call and returns the same text at each further call. */
export function cachedContent (make: () => string): () => CachedContent {
  let content: CachedContent | undefined
  return () => {
    content ??= withETag(make())
    return content
  }
}

export function withETag (text: string): CachedContent {
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` }
}

/** Sends 200, or 304 if the client has the content. Clients may store it, but must revalidate it before each use. */
export function sendCached (
  request: FastifyRequest, reply: FastifyReply, type: string, { text, etag }: { text: string | Buffer, etag: string }
): FastifyReply {
  const conditions = parseConditions(request)
  const isKnown = conditions !== undefined && isNotModified(conditions, etag)
  reply.headers({ 'cache-control': 'no-cache', etag })
  if (isKnown) return reply.code(304).send(request.method === 'HEAD' ? emptyStream() : undefined)
  return reply.header('content-type', type).send(text)
}
