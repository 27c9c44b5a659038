import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { nothing } from './responses.ts'
import { matchesWeakly } from './conditional-requests.ts'

/** A text with its entity tag. */
interface Kept { text: string, etag: string }

/** A text that is made when it is first asked for, and then kept. */
export function kept (make: () => string): () => Kept {
  let made: Kept | undefined
  return () => {
    made ??= tagged(make())
    return made
  }
}

export function tagged (text: string): Kept {
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` }
}

/** 200, or 304 to who has it; it may be stored, but only be used after asking whether it changed. */
export function sendKept ({ headers, method }: FastifyRequest, reply: FastifyReply, type: string, { text, etag }: { text: string | Buffer, etag: string }): FastifyReply {
  reply.headers({ 'cache-control': 'no-cache', etag })
  const known = headers['if-none-match']
  if (known !== undefined && matchesWeakly(known, etag)) return reply.code(304).send(method === 'HEAD' ? nothing() : undefined)
  return reply.header('content-type', type).send(text)
}
