import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { IncomingMessage } from 'node:http'
import { BadRequest, HeadersTooLarge, UriTooLong } from '../errors.ts'

/** Maximum length of a URL, in characters. RFC 9110 section 4.1 recommends at least 8,000 octets. */
export const MAX_URL_LENGTH = 8_192

/** Maximum size of all header fields together. */
export const MAX_HEADER_BYTES = 16_384

/**
 * Maximum size of a request head that Node reads: above both limits, so that the service can tell which one was
 * exceeded, and below the 64 KB that Node reads from a socket at once.
 */
export const MAX_HEAD_BYTES = 61_440

/** Characters that a URL cannot contain (RFC 3986 section 2). Newer versions of Node reject them; older ones do not. */
const UNENCODED = /[^\x21-\x7e]/

/** Size of ": " and the line end of a header field. */
const FIELD_OVERHEAD_BYTES = 4

/** Rejects malformed or oversized request heads, whatever the path. */
export const requestHead = fp(async function requestHead (app: FastifyInstance) {
  // Otherwise Node silently drops header fields beyond the 2000th. MAX_HEADER_BYTES limits them already.
  app.server.maxHeadersCount = 0
  app.addHook('onRequest', (request, _reply, done) => { done(validateRequestHead(request.raw, request.originalUrl)) })
}, { name: 'request-head' })

function validateRequestHead (
  { url, headers, rawHeaders, httpVersion }: IncomingMessage, originalUrl: string
): Error | undefined {
  if (originalUrl.length > MAX_URL_LENGTH) return new UriTooLong(MAX_URL_LENGTH)
  if (UNENCODED.test(originalUrl)) return new BadRequest('The URL contains a character that must be percent-encoded')
  let bytes = rawHeaders.length / 2 * FIELD_OVERHEAD_BYTES
  for (const text of rawHeaders) bytes += text.length
  if (bytes > MAX_HEADER_BYTES) return new HeadersTooLarge(MAX_HEADER_BYTES)
  if (headers.host === undefined && httpVersion === '1.1') {
    return new BadRequest('An HTTP/1.1 request must have a Host header')
  }
  if (url !== UNDECODABLE || originalUrl === UNDECODABLE) return undefined
  return new BadRequest('The URL contains an invalid percent-escape. Write "%" itself as "%25"')
}

/** Replaces paths that the router cannot decode: the router would reject them before any hook runs. */
const UNDECODABLE = '/%25'

/** Returns the path and query of a request. A proxy may send an absolute URL (RFC 9112 section 3.2.2). */
export function normalizeRequestTarget ({ url = '' }: IncomingMessage): string {
  const target = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, '/')
  return target.includes('%') && !isDecodable(target) ? UNDECODABLE : target
}

function isDecodable (url: string): boolean {
  const [path = ''] = url.split('?')
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}
