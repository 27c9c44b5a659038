import ipaddr from 'ipaddr.js'

/** RFC 4291 section 2.4: no IPv6 address outside this range is assigned as global unicast. */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3')

/** Tells whether a webhook of any account may call this address: public, and no detour to a private address. */
export function isPublicAddress (text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  // An IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) reaches the IPv4 address that it contains.
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || address.match(GLOBAL_UNICAST)
}

/** Returns the IP address that is a URL's host, in its usual notation; `undefined` when the host is a name. */
export function literalAddress (url: string): string | undefined {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  return ipaddr.isValid(host) ? host : undefined
}
