import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { emptyStream } from './responses.ts'
import { isNotModified, parseConditions } from './conditional-requests.ts'

/** The bytes of a text, whole or in parts, with their entity tag: a text would be encoded again for each response. */
export interface CachedContent<Body = Buffer> { body: Body, etag: string }

/** Returns a function that makes a text at its first call and returns the same content at each further call. */
export function cachedContent (make: () => string): () => CachedContent {
  let content: CachedContent | undefined
  return () => {
    content ??= contentOf(make())
    return content
  }
}

export function contentOf (text: string): CachedContent {
  const body = Buffer.from(text)
  return { body, etag: entityTagOf(body) }
}

export function entityTagOf (content: string | Buffer): string {
  return `"${createHash('sha256').update(content).digest('base64url')}"`
}

/** Sends 200, or 304 if the client has the content. Clients may store it, but must revalidate it before each use. */
export function sendCached (
  request: FastifyRequest, reply: FastifyReply, type: string, { body, etag }: CachedContent<Buffer | Buffer[]>
): FastifyReply {
  const conditions = parseConditions(request)
  const isKnown = conditions !== undefined && isNotModified(conditions, etag)
  reply.headers({ 'cache-control': 'no-cache', etag })
  if (isKnown) return reply.code(304).send(request.method === 'HEAD' ? emptyStream() : undefined)
  reply.header('content-type', type)
  if (!Array.isArray(body)) return reply.send(body)
  return reply.header('content-length', body.reduce((sum, part) => sum + part.length, 0)).send(Readable.from(body))
}
