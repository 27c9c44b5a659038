import type { FastifyInstance } from 'fastify'
import type { IncomingMessage } from 'node:http'
import { BadRequest, HeadersTooLarge, UriTooLong } from '../errors.ts'

/** Addresses longer than this are refused, in characters. */
export const MAX_URL_LENGTH = 8_192

/** Header fields larger than this altogether are refused, in bytes. */
export const MAX_HEADER_BYTES = 16_384

/**
 * What Node reads of a request's head, in bytes: more than both limits, so that it is known which one was
 * passed, and less than the 64 KB that it takes from a socket at once.
 */
export const MAX_HEAD_BYTES = 61_440

/** What no address holds (RFC 3986 section 2). Node's newer parsers refuse it themselves, older ones do not. */
const UNENCODED = /[^\x21-\x7e]/

/** ": " and the end of the line. */
const FIELD_BYTES = 4

/** What is wrong with the head of a request, whatever it asks for. */
export function validateRequestHead (app: FastifyInstance): void {
  // Node would drop fields beyond the 2000th in silence; their size is bounded as it is.
  app.server.maxHeadersCount = 0

  app.addHook('onRequest', (request, _reply, done) => {
    const { url, headers, rawHeaders, httpVersion } = request.raw
    if (request.originalUrl.length > MAX_URL_LENGTH) return done(new UriTooLong(MAX_URL_LENGTH))
    if (UNENCODED.test(request.originalUrl)) return done(new BadRequest('The address holds a character that must be percent-encoded'))
    let size = 0
    for (const text of rawHeaders) size += text.length
    if (size + rawHeaders.length / 2 * FIELD_BYTES > MAX_HEADER_BYTES) return done(new HeadersTooLarge(MAX_HEADER_BYTES))
    if (headers.host === undefined && httpVersion === '1.1') return done(new BadRequest('An HTTP/1.1 request must have a Host header'))
    done(url === BROKEN && request.originalUrl !== BROKEN ? new BadRequest('The address holds a broken percent-escape') : undefined)
  })
}

/** Where the router is sent with a path that it cannot decode: its own refusal would come before any hook. */
const BROKEN = '/%25'

/** The path and query of a request; a proxy may send the whole address (RFC 9112 section 3.2.2). */
export function normalizeRequestTarget ({ url = '' }: IncomingMessage): string {
  const form = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, '/')
  return form.includes('%') && !isDecodable(form) ? BROKEN : form
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
