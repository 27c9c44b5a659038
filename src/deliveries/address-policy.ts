import ipaddr from 'ipaddr.js'

/** RFC 4291 section 2.4: no IPv6 address outside this range is assigned as global unicast. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Public addresses of services that a cloud offers to its own machines, and not to the internet. The metadata services
 * of other clouds have private addresses: 169.254.169.254, 192.0.0.192 (Oracle), 100.100.100.200 (Alibaba),
 * fd00:ec2::254 (AWS), fd20:ce::254 (Google).
 */
const PLATFORM_NETWORKS = [
  // Azure: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
  '168.63.129.16/32',
  // IBM: https://cloud.ibm.com/docs/vpc?topic=vpc-service-endpoints-for-vpc
  '161.26.0.0/16', '166.8.0.0/14',
  // Google: https://cloud.google.com/vpc/docs/configure-private-google-access
  '199.36.153.4/30', '199.36.153.8/30', '2600:2d00:2:1000::/64', '2600:2d00:2:2000::/64'
].map((network) => ipaddr.parseCIDR(network))

/** Tells whether a webhook of any account may call this address: public, and no detour to a private address. */
export function isPublicAddress (text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  // An IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) reaches the IPv4 address that it contains.
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast') return false
  if (address instanceof ipaddr.IPv6 && !address.match(GLOBAL_UNICAST)) return false
  return !PLATFORM_NETWORKS.some((network) => network[0].kind() === address.kind() && address.match(network))
}

/** The names of this machine: `localhost`, and every name below it (RFC 6761 section 6.3). */
const LOCALHOST = /(?:^|\.)localhost\.?$/i

/**
 * Tells whether a URL itself says that its host is not public: by an IP address, in any notation, or by a name of this
 * machine. Of another name, its addresses decide, when it is called.
 */
export function hasPrivateHost (url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  return LOCALHOST.test(host) || (ipaddr.isValid(host) && !isPublicAddress(host))
}
