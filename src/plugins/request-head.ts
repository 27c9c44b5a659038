import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { IncomingMessage } from 'node:http'
import { BadRequest, HeadersTooLarge, NotImplemented, UriTooLong } from '../errors.ts'

/** Maximum length of a URL, in characters. RFC 9110 section 4.1 recommends at least 8,000 octets. */
export const MAX_URL_LENGTH = 8_192

/** Maximum size of all header fields together. */
export const MAX_HEADER_BYTES = 16_384

/** Maximum number of header fields: each costs more than its bytes. */
export const MAX_HEADER_FIELDS = 200

/** Maximum size of a request head that Node parses, without the separators of the fields. */
export const MAX_HEAD_BYTES = MAX_URL_LENGTH + MAX_HEADER_BYTES

/**
 * Characters that a URL cannot contain (RFC 3986 section 2), of which newer versions of Node reject some, and `#`: a
 * request target has no fragment (RFC 9112 section 3.2).
 */
const UNENCODED = /[^\x21\x22\x24-\x7e]/

/** A path, an http or https URL, or the `*` of OPTIONS (RFC 9112 section 3.2). */
const TARGET = /^(?:\/|https?:\/\/[^/?#])/i

/** A host name or an IP address, and optionally a port (RFC 9110 section 7.2). */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/

/** Size of ": " and the line end of a header field. */
const FIELD_OVERHEAD_BYTES = 4

/**
 * Rejects malformed or oversized request heads, whatever the path, and ends their connections: further heads would be
 * parsed before any limit of a client applies.
 */
export const requestHead = fp(async function requestHead (app: FastifyInstance) {
  app.addHook('onRequest', (request, reply, done) => {
    const error = validateRequestHead(request.raw, request.originalUrl)
    if (error !== undefined) reply.header('connection', 'close')
    done(error)
  })
}, { name: 'request-head' })

function validateRequestHead (
  { method, url, headers, rawHeaders, httpVersion }: IncomingMessage, originalUrl: string
): Error | undefined {
  if (originalUrl.length > MAX_URL_LENGTH) return new UriTooLong(MAX_URL_LENGTH)
  if (UNENCODED.test(originalUrl)) return new BadRequest('The URL contains a character that must be percent-encoded')
  if (!TARGET.test(originalUrl) && !(originalUrl === '*' && method === 'OPTIONS')) {
    return new BadRequest('The request target must be a path that begins with "/", or an http or https URL')
  }
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return new BadRequest('The request line must end with HTTP/1.1 or HTTP/1.0')
  }
  let bytes = rawHeaders.length / 2 * FIELD_OVERHEAD_BYTES
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    bytes += name.length + rawHeaders[i + 1]!.length
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  if (bytes > MAX_HEADER_BYTES || rawHeaders.length / 2 > MAX_HEADER_FIELDS) {
    return new HeadersTooLarge(MAX_HEADER_FIELDS, MAX_HEADER_BYTES)
  }
  if (headers.host === undefined && httpVersion === '1.1') {
    return new BadRequest('An HTTP/1.1 request must have a Host header')
  }
  if (hosts > 1 || !HOST.test(headers.host ?? '')) {
    return new BadRequest('A request must have one Host header, with a host and optionally a port')
  }
  const { 'transfer-encoding': coding = 'chunked' } = headers
  if (!/^\s*chunked\s*$/i.test(coding)) {
    return new NotImplemented('The only transfer coding of this service is "chunked" (RFC 9112 section 6.1)')
  }
  if (url !== UNDECODABLE || originalUrl === UNDECODABLE) return undefined
  return new BadRequest('The URL contains an invalid percent-escape. Write "%" itself as "%25"')
}

/** Replaces URLs with an invalid percent-escape: the router would reject some of them before any hook runs. */
const UNDECODABLE = '/%25'

/** Returns the path and query of a request. A proxy may send an absolute URL (RFC 9112 section 3.2.2). */
export function normalizeRequestTarget ({ url = '' }: IncomingMessage): string {
  const target = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, '/')
  return target.includes('%') && !isDecodable(target) ? UNDECODABLE : target
}

function isDecodable (url: string): boolean {
  try {
    decodeURIComponent(url)
    return true
  } catch {
    return false
  }
}
