import type { FastifyReply, FastifyRequest } from 'fastify'
import { accountOf, STRANGERS } from '../plugins/admission.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The limit of the account has counted this message of `/mcp`, or the request that it became. */
    isCounted: boolean
  }
}

/**
 * Counts a message for the limit of its account, unless it is counted.
 *
 * @throws RateLimited
 */
export async function countMessage (request: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (request.isCounted || accountOf(request) === STRANGERS) return
  request.isCounted = true
  await request.server.limits.perAccount(request, reply)
}
