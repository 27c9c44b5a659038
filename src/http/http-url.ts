/**
 * The characters of an http or https URL in their places, for schemas of requests: it matches every URL that breaks no
 * rule below, and few others. The ranges stand for sub-delimiters and digits without quotes, which generators of code
 * would have to escape: `&-.` is `&'()*+,-.` and `&-;` also has `/`, the digits, `:` and `;`.
 */
export const HTTP_URL_PATTERN = '^[Hh][Tt][Tt][Pp][Ss]?://' +
  '(\\[[0-9A-Fa-f:.]+\\]|([!$&-.0-9;=A-Z_a-z~]|%[0-9A-Fa-f]{2})+)(:[0-9]*)?' +
  '(/([!$&-;=@A-Z_a-z~]|%[0-9A-Fa-f]{2})*)?(\\?([!$&-;=?@A-Z_a-z~]|%[0-9A-Fa-f]{2})*)?$'

/** The parts of a URI with an authority (RFC 3986 appendix B). */
const PARTS = /^([^:/?#]+):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/

/** Characters of a URI, and percent-encoded octets (RFC 3986 section 2). */
const URI = /^(?:[\w.~:/?#[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*$/

/** A registered name, an IPv4 address or an IP literal, and a port (RFC 3986 section 3.2). */
const HOST_AND_PORT = /^(?:\[[0-9A-Fa-f:.]+\]|[^[\]:]+)(?::\d*)?$/

/**
 * Returns the rule that a text breaks as the http or https URL of a request: an absolute URI with a host (RFC 3986),
 * without user information, which the request would send and responses would show, and without a fragment, which no
 * request contains. Returns `undefined` for a text that breaks no rule.
 */
export function problemOfHttpUrl (text: string): string | undefined {
  const [, scheme = '', authority = '', path = '', query = '', fragment] = PARTS.exec(text) ?? []
  if (!/^https?$/i.test(scheme)) return 'must be an absolute URL that begins with http:// or https://'
  if (!URI.test(text) || /[[\]]/.test(path + query)) {
    return 'must be a URI as RFC 3986 defines it, with all other characters percent-encoded'
  }
  if (authority.includes('@')) return 'must not contain user information, such as user:password@'
  if (fragment !== undefined) return 'must not contain a fragment, which begins with #'
  if (authority === '' || authority.startsWith(':')) return 'must contain a host'
  // The platform's parser, which sends the requests, knows the ranges of ports and addresses.
  if (!HOST_AND_PORT.test(authority) || !URL.canParse(text)) return 'must contain a valid host and port'
  return undefined
}

/** The addresses by which a server listens at all addresses of its machine. */
const ANY_ADDRESS: Record<string, string> = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' }

/** Returns the origin of a server as a program on the same machine can call it: 0.0.0.0 and :: are no destinations. */
export function reachableOrigin (listeningOrigin: string): string {
  return listeningOrigin.replace(/(?<=:\/\/)(0\.0\.0\.0|\[::\])(?=:)/, (address) => ANY_ADDRESS[address]!)
}
