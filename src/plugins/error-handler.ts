import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { setWwwAuthenticate } from './authentication.ts'
import * as errors from '../errors.ts'

/** The closed list of codes, as clients see them. */
const CODES: ReadonlySet<string> = new Set(Object.values(errors).map((CodedError) => codeOf(new CodedError())))

/** Seconds after which a client may try again. */
const RETRY_AFTER_S = 1

export function codeOf ({ code }: { code: string }): string {
  return code.toLowerCase()
}

/** Answers every error in the Error shape: a 4xx says what is wrong, a 5xx says nothing and logs all. */
export function errorHandler (app: FastifyInstance): void {
  app.setErrorHandler<FastifyError>(async (thrown, request, reply) => {
    const error = await applyFailedAuthLimit(toApiError(thrown, app), request, reply)
    const status = error.statusCode ?? 500
    app.instrumentation?.errorSent(codeOf(error))
    if (status >= 500) request.log.error({ err: thrown }, error.message)
    if (status === 401) setWwwAuthenticate(request, reply)
    if (status === 403 && error instanceof errors.ReadOnlyKey) setWwwAuthenticate(request, reply, 'insufficient_scope')
    if (status === 503 || error instanceof errors.IdempotencyKeyInUse) reply.header('retry-after', RETRY_AFTER_S)
    reply.removeHeader('etag')
    return reply.code(status).headers({ 'cache-control': 'no-store' }).send({ code: codeOf(error), message: error.message, status })
  })
  app.setNotFoundHandler(async () => { throw new errors.RouteNotFound() })
}

/** Who tries one bad credential after the other is told to wait; a good key never comes here. */
async function applyFailedAuthLimit (error: FastifyError, request: FastifyRequest, reply: FastifyReply): Promise<FastifyError> {
  if (error.statusCode !== 401 || !request.headers.authorization) return error
  try {
    await request.server.limits.failedAuth(request, reply)
    return error
  } catch (limit) {
    return limit as FastifyError
  }
}

/** Ours as it is; Fastify's own by what it means; anything else is a defect and says nothing. */
function toApiError (error: FastifyError, app: FastifyInstance): FastifyError {
  if (CODES.has(codeOf({ code: String(error.code) }))) return error
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE': return new errors.PayloadTooLarge(app.initialConfig.bodyLimit)
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE': return new errors.InvalidContentType('application/json')
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH': return new errors.BadRequest('The body is not as long as Content-Length says')
    case 'FST_BEARER_AUTH_MISSING_AUTHORIZATION_HEADER': return new errors.Unauthorized('Send your API key as "Authorization: Bearer <API_KEY>"')
    case 'FST_BEARER_AUTH_INVALID_AUTHORIZATION_HEADER': return new errors.Unauthorized('The Authorization header must have the form "Bearer <API_KEY>"')
  }
  const status = error.statusCode ?? 500
  return status >= 400 && status < 500 ? new errors.BadRequest('The request cannot be read') : new errors.InternalError()
}
