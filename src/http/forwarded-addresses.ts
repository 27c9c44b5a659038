import { isIP } from 'node:net'

/** An address in brackets or an IPv4 address, and the port that some load balancers add. */
const WITH_PORT = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d+)?$/

/**
 * Returns the addresses of `X-Forwarded-For` without ports, up to the nearest that cannot be read. Each port would be a
 * client of its own. The address to the right of one that cannot be read is that of the proxy which wrote it.
 */
export function forwardedAddresses (field: string): string {
  const addresses = field.split(',').map((entry) => entry.trim().replace(WITH_PORT, '$1$2'))
  return addresses.slice(addresses.findLastIndex((address) => isIP(address) === 0) + 1).join(', ')
}
