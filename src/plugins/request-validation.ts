import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { parseConditions } from '../http/conditional-requests.ts'
import { parseIdempotencyKey } from '../http/idempotency.ts'

/**
 * Validates the requests of a scope in the contract's order: header fields, path, query, body. A header field of one
 * route alone is validated by a `preValidation` hook of that route.
 */
export const requestValidation = fp(async function requestValidation (app: FastifyInstance) {
  app.decorateRequest('idempotencyKey', undefined)
  app.decorateRequest('conditions', undefined)
  app.addHook('onRoute', rejectUnknownQuery)
  app.addHook('preValidation', (request, _reply, done) => {
    request.idempotencyKey = parseIdempotencyKey(request)
    request.conditions = parseConditions(request)
    done(validatePathAndQuery(request))
  })
}, { name: 'request-validation' })

/** Rejects all query parameters of a route that describes none. */
function rejectUnknownQuery ({ schema }: RouteOptions): void {
  if (schema !== undefined) schema.querystring ??= { type: 'object', properties: {}, additionalProperties: false }
}

/**
 * Validates path and query before Fastify does, if the route has a body: Fastify validates the body between path and
 * query. For all other routes, its own order is the contract's.
 */
function validatePathAndQuery (request: FastifyRequest): Error | undefined {
  if (request.getValidationFunction('body') === undefined) return undefined
  return errorIn(request.getValidationFunction('params')?.(request.params)) ??
    errorIn(request.getValidationFunction('querystring')?.(request.query))
}

/** Fastify's type of validation functions is that of Ajv's. Those of this service return `{ value }` or `{ error }`. */
function errorIn (result: unknown): Error | undefined {
  return (result as { error?: Error } | undefined)?.error
}
