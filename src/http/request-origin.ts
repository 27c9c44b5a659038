import type { FastifyRequest } from 'fastify'

/** A host name or an address, of at most 255 characters, and a port. */
const HOST = /^[A-Za-z0-9.:[\]-]{1,261}$/

/** Returns the origin at which the client reached the service: safe to write into JSON, HTML and a shell command. */
export function originOf (request: FastifyRequest): string {
  return `${protocolOf(request)}://${hostOf(request)}`
}

/** A trusted proxy may pass on `X-Forwarded-Proto` of its client, which can be any text. */
export function protocolOf ({ protocol }: FastifyRequest): 'http' | 'https' {
  return /^https$/i.test(protocol) ? 'https' : 'http'
}

/**
 * Returns the host with its port, as a URL can have them: none has the port 99999. It is in its normal form, because
 * the colon of an empty port (`localhost:`) would end a plain scalar of YAML.
 */
export function hostOf (request: FastifyRequest): string {
  const origin = `${protocolOf(request)}://${request.host}`
  return HOST.test(request.host) && URL.canParse(origin) ? new URL(origin).host : 'localhost'
}
