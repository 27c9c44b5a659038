import createError, { type FastifyErrorConstructor } from '@fastify/error'

/**
 * Errors that several resources or none of them answer with, in the order of their status. A resource's own errors
 * are in its folder. The codes are public: clients branch on them. `%s` is filled in where the error is thrown. A
 * message says what is wrong and what would be right, and never contains SQL, a file path or a stack.
 */

/** The base of all errors with a public code; everything else that is thrown is answered as `internal_error`. */
class ApiError extends Error {}

/** A class of coded errors, with values for `%s` that make an example of its message. */
export type ErrorClass = FastifyErrorConstructor & { exampleValues: readonly unknown[] }

/** Defines a class of errors: its public code, its message, its HTTP status and example values for `%s`. */
export function defineError (code: string, message: string, status: number, ...exampleValues: unknown[]): ErrorClass {
  return Object.assign(createError(code, message, status, ApiError as ErrorConstructor), { exampleValues })
}

export function isApiError (error: unknown): boolean {
  return error instanceof ApiError
}

/** What is wrong with a request, and where. */
export interface RequestProblem {
  /** A JSON pointer that begins with a part of the request, such as `/body/quantity`. */
  pointer: string
  /** A keyword of JSON Schema. */
  rule: string
}

/** The problems of errors: their classes know only a message. */
const problems = new WeakMap<Error, RequestProblem>()

/** Adds to an error what is wrong with the request, and where. */
export function withProblem<E extends Error> (error: E, pointer: string, rule: string): E {
  problems.set(error, { pointer, rule })
  return error
}

export function problemOf (error: Error): RequestProblem | undefined {
  return problems.get(error)
}

/** Returns the code as clients see it: @fastify/error writes codes in capitals. */
export function publicCode ({ code }: { code: string }): string {
  return code.toLowerCase()
}

// 400
export const InvalidJson = defineError(
  'invalid_json', 'The request body is not valid JSON: %s.', 400, 'see position 12')
export const InvalidContentType = defineError(
  'invalid_content_type', 'Send the body as %s, without a content encoding.', 400, 'application/json')
export const ValidationFailed = defineError('validation_failed', '%s.', 400, 'Query parameter "page" is not allowed')
export const BadRequest = defineError('bad_request', '%s.', 400, 'The path contains an invalid percent-escape')

// 401
export const Unauthorized = defineError(
  'unauthorized', '%s.', 401, 'Send your API key as "Authorization: Bearer <API_KEY>"')

// 403
export const ReadOnlyKey = defineError(
  'read_only_key', 'This API key may only read. Use a key that was created without readOnly.', 403)

// 404
export const RouteNotFound = defineError(
  'route_not_found', 'No route matches this path. %s', 404, 'GET /openapi.json lists all routes.')

// 405
export const MethodNotAllowed = defineError(
  'method_not_allowed', 'This path does not support %s. The Allow header lists the supported methods.', 405, 'PUT')

// 408
export const RequestTimeout = defineError('request_timeout', 'The request did not arrive in time.', 408)

// 409
export const IdempotencyKeyInUse = defineError(
  'idempotency_key_in_use', 'A request with this Idempotency-Key is still running. Try again in a moment.', 409)

export const StorageLimitReached = defineError(
  'storage_limit_reached',
  'Your account may store at most %s bytes, and this write needs more than are left. Delete something first.', 409,
  1_073_741_824)

// 412
export const PreconditionFailed = defineError(
  'precondition_failed', 'The current ETag does not satisfy %s. Read the resource again before you retry.', 412,
  'If-Match')

// 413, 414, 431
export const PayloadTooLarge = defineError(
  'payload_too_large', 'The request body is larger than %s bytes.', 413, 131072)
export const UriTooLong = defineError('uri_too_long', 'The request target is longer than %s characters.', 414, 8192)
export const HeadersTooLarge = defineError(
  'headers_too_large', 'The request has more than %s header fields, or they are larger than %s bytes together.', 431,
  200, 16384)

// 422
export const IdempotencyKeyReused = defineError(
  'idempotency_key_reused',
  'This Idempotency-Key was used for a different request. Use a new key for a new request.', 422)

// 429
export const RateLimited = defineError('rate_limited', 'Too many requests. Try again in %s seconds.', 429, 12)

// 500, 501, 503
export const InternalError = defineError(
  'internal_error', 'An internal error occurred. Quote the Request-Id when you report it.', 500)
export const NotImplemented = defineError(
  'not_implemented', '%s.', 501,
  'HTTP has no method "FETCH". An OPTIONS request gets the methods of a path in Allow')
export const Overloaded = defineError('overloaded', 'The service is overloaded. Try again shortly.', 503)
export const DatabaseUnavailable = defineError(
  'database_unavailable',
  'The database did not respond in time. Try again; a write may have taken effect, so repeat it with its ' +
    'Idempotency-Key.',
  503)
export const ShuttingDown = defineError('shutting_down', 'The service is shutting down. Try again shortly.', 503)
