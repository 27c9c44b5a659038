import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'

/**
 * Rejects unknown query parameters in a scope, and validates path and query before the body. Fastify itself validates
 * the body between path and query; the contract's order is path, query, body.
 */
export const queryValidation = fp(async function queryValidation (app: FastifyInstance) {
  app.addHook('onRoute', rejectUnknownQuery)
}, { name: 'query-validation' })

function rejectUnknownQuery (route: RouteOptions): void {
  const { schema } = route
  if (schema === undefined) return
  schema.querystring ??= { type: 'object', properties: {}, additionalProperties: false }
  if (schema.body !== undefined) route.preValidation = [validateParamsAndQuery, ...[route.preValidation ?? []].flat()]
}

function validateParamsAndQuery (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void {
  for (const [part, data] of [['params', request.params], ['querystring', request.query]] as const) {
    const result = request.getValidationFunction(part)?.(data) as unknown as { error?: Error } | undefined
    if (result?.error !== undefined) return done(result.error)
  }
  done()
}
