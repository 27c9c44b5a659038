import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { parseConditions } from '../http/conditional-requests.ts'

/**
 * Parses `If-Match` and `If-None-Match` of the requests in a scope, and rejects malformed ones. Register it after
 * query-validation: its hook must run first, because the contract validates headers before path, query and body.
 */
export const preconditions = fp(async function preconditions (app: FastifyInstance) {
  app.decorateRequest('conditions', undefined)
  app.addHook('onRoute', (route: RouteOptions) => {
    const hooks = [route.preValidation ?? []].flat()
    // A HEAD route is made of a GET route that has the hook.
    if (!hooks.includes(readConditions)) route.preValidation = [readConditions, ...hooks]
  })
}, { name: 'preconditions', dependencies: ['query-validation'] })

function readConditions (request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  request.conditions = parseConditions(request)
  done()
}
