import type { FastifyInstance } from 'fastify'
import type { IncomingMessage } from 'node:http'
import { BadRequest, HeadersTooLarge, UriTooLong } from '../errors.ts'

/** Addresses longer than this are refused, in characters. */
export const URL_LIMIT = 8_192

/** Header fields larger than this altogether are refused, in bytes. */
export const FIELDS_LIMIT = 16_384

/**
 * What Node reads of a request's head, in bytes: more than both limits, so that it is known which one was
 * passed, and less than the 64 KB that it takes from a socket at once.
 */
export const HEAD_LIMIT = 61_440

/** What no address holds (RFC 3986 section 2). Node's newer parsers refuse it themselves, older ones do not. */
const UNENCODED = /[^\x21-\x7e]/

/** ": " and the end of the line. */
const FIELD_BYTES = 4

/** What is wrong with the head of a request, whatever it asks for. */
export function judgeHead (app: FastifyInstance): void {
  // Node would drop fields beyond the 2000th in silence; their size is bounded as it is.
  app.server.maxHeadersCount = 0

  app.addHook('onRequest', (request, _reply, done) => {
    const { url, headers, rawHeaders, httpVersion } = request.raw
    if (request.originalUrl.length > URL_LIMIT) return done(new UriTooLong(URL_LIMIT))
    if (UNENCODED.test(request.originalUrl)) return done(new BadRequest('The address holds a character that must be percent-encoded'))
    let size = 0
    for (const text of rawHeaders) size += text.length
    if (size + rawHeaders.length / 2 * FIELD_BYTES > FIELDS_LIMIT) return done(new HeadersTooLarge(FIELDS_LIMIT))
    if (headers.host === undefined && httpVersion === '1.1') return done(new BadRequest('An HTTP/1.1 request must have a Host header'))
    done(url === BROKEN && request.originalUrl !== BROKEN ? new BadRequest('The address holds a broken percent-escape') : undefined)
  })
}

/** Where the router is sent with a path that it cannot decode: its own refusal would come before any hook. */
const BROKEN = '/%25'

/** The path and query of a request; a proxy may send the whole address (RFC 9112 section 3.2.2). */
export function originForm ({ url = '' }: IncomingMessage): string {
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
