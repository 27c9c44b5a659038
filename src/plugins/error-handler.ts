import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setWwwAuthenticate } from './authentication.ts'
import * as errors from '../errors.ts'
import { routeNotFound } from './method-not-allowed.ts'
import { isUnfinished } from './unfinished-requests.ts'

/** Delay before a retry: the shortest that `Retry-After` can express. */
const RETRY_AFTER_S = 1

/** The message of DatabaseUnavailable for writes that take no Idempotency-Key. */
const UNAVAILABLE_WITHOUT_KEY =
  'The database did not respond in time. Try again; the request may have taken effect all the same.'

/** The codes of 5xx that a client can get as often as it wants, and that say nothing about the service. */
const CAUSED_BY_CLIENT = new Set(['injected_fault', 'not_implemented'])

/** Sends every error in the Error shape. A 4xx explains the error; a 5xx explains nothing, and the log has it all. */
export const errorHandler = fp(async function errorHandler (app: FastifyInstance) {
  app.setErrorHandler<FastifyError>(async (thrown, request, reply) => {
    // The parser may have the whole body but not have come to it. Otherwise the response ends the connection.
    if (isUnfinished(request.raw)) await nextTurn()
    const error = await applyFailedAuthLimit(toApiError(thrown, request), request, reply)
    const status = error.statusCode ?? 500
    reply.errorCode = errors.publicCode(error)
    reply.problem = errors.problemOf(error)
    app.instrumentation?.errorSent(reply.errorCode)
    if (status >= 500 && !CAUSED_BY_CLIENT.has(reply.errorCode)) request.log.error({ err: thrown }, error.message)
    if (status === 401) setWwwAuthenticate(request, reply)
    if (status === 403 && error instanceof errors.ReadOnlyKey) setWwwAuthenticate(request, reply, 'insufficient_scope')
    const isTemporary = status === 503 || error instanceof errors.IdempotencyKeyInUse
    if (isTemporary && !reply.hasHeader('retry-after')) reply.header('retry-after', RETRY_AFTER_S)
    // They describe what the error replaces. Fastify removes Content-Type and Content-Length.
    reply.removeHeader('etag').removeHeader('content-encoding')
    const takesNoKey = request.routeOptions.config.secret === true
    const message = takesNoKey && error instanceof errors.DatabaseUnavailable
      ? UNAVAILABLE_WITHOUT_KEY
      : error.message
    const body = { code: reply.errorCode, message, status }
    return reply.code(status).headers({ 'cache-control': 'no-store' }).send(body)
  })
  app.setNotFoundHandler(async () => { throw routeNotFound(app) })
}, { name: 'error-handler', dependencies: ['public-url', 'rate-limits', 'request-logging'] })

/** Counts a bad credential. Replaces the 401 by a 429 if the client sent too many; a valid key is never counted. */
async function applyFailedAuthLimit (
  error: FastifyError, request: FastifyRequest, reply: FastifyReply
): Promise<FastifyError> {
  if (error.statusCode !== 401 || !request.headers.authorization) return error
  try {
    await request.server.limits.failedAuth(request, reply)
    return error
  } catch (limit) {
    return limit as FastifyError
  }
}

/** Returns our errors unchanged and translates Fastify's. Every other error is a defect: it becomes a 500. */
function toApiError (error: FastifyError, { routeOptions }: FastifyRequest): FastifyError {
  if (errors.isApiError(error)) return error
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new errors.PayloadTooLarge(routeOptions.bodyLimit)
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new errors.InvalidContentType('application/json')
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new errors.BadRequest('The length of the body differs from Content-Length. Send the whole body')
    case 'FST_BEARER_AUTH_MISSING_AUTHORIZATION_HEADER':
      return new errors.Unauthorized('Send your API key as "Authorization: Bearer <API_KEY>"')
    case 'FST_BEARER_AUTH_INVALID_AUTHORIZATION_HEADER':
      return new errors.Unauthorized('The Authorization header must have the form "Bearer <API_KEY>"')
  }
  const status = error.statusCode ?? 500
  if (status < 400 || status >= 500) return new errors.InternalError()
  return new errors.BadRequest('The request cannot be parsed. Check its headers and its body')
}
