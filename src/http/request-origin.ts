import type { FastifyRequest } from 'fastify'

/** Returns the origin at which the client reached the service: safe to write into JSON, HTML and a shell command. */
export function originOf ({ protocol, host }: FastifyRequest): string {
  return `${protocol}://${/^[A-Za-z0-9.:[\]-]+$/.test(host) ? host : 'localhost'}`
}
