import * as errors from '../errors.ts'
import { codeOf } from '../plugins/error-handler.ts'
import { MAX_HEADER_BYTES, MAX_URL_LENGTH } from '../plugins/request-head.ts'
import type { Answer } from './document.ts'
import { always, certainly, sometimes } from './headers.ts'

interface CodedError { code: string, message: string, statusCode?: number }
/** One of the classes of errors.ts. */
export type ErrorClass = new (...values: any[]) => Error

/** What stands for `%s` in the examples, by code. */
const VALUES: Record<string, unknown[]> = {
  invalid_json: ['see position 12'],
  invalid_content_type: ['application/json'],
  validation_failed: ['Query parameter "page" is not allowed'],
  bad_request: ['The URL contains an invalid percent-escape'],
  unauthorized: ['Send your API key as "Authorization: Bearer <API_KEY>"'],
  method_not_allowed: ['PUT'],
  pet_not_available: ['sold'],
  webhook_limit_reached: [20],
  insufficient_stock: ['The pet has 1 in stock, fewer than the 2 ordered'],
  order_already_shipped: ['changed'],
  invalid_status_transition: ['sold', 'available', ''],
  operation_sunset: ['2030-12-05'],
  events_expired: ['the oldest stored event is 1200'],
  precondition_failed: ['If-Match'],
  payload_too_large: [131072],
  uri_too_long: [MAX_URL_LENGTH],
  headers_too_large: [MAX_HEADER_BYTES],
  rate_limited: [12]
}

const DESCRIPTIONS: Record<number, string> = {
  400: 'The request breaks a rule of form; the message names the field and the rule.',
  401: 'The API key is missing, not in bearer form, unknown, revoked or expired.',
  403: 'This may not be done.',
  404: 'Your store has no such record.',
  408: 'The request did not arrive in time.',
  409: 'The state of the store stands against it, and nothing was changed.',
  410: 'This is no longer to be had.',
  412: 'The record is not as `If-Match` or `If-None-Match` expects it, and nothing was changed.',
  413: 'The body is too large.',
  414: 'The address is too long.',
  422: 'The `Idempotency-Key` belongs to another request.',
  429: 'Too many requests.',
  431: 'The header fields are too large.',
  500: 'A defect of the service.',
  503: 'The service cannot answer now. A write may have taken effect: repeat it with its `Idempotency-Key`, where one is taken.'
}

/** Every code with its status, in the order of errors.ts. */
export function allCodes (): Array<{ code: string, status: number }> {
  return Object.values(errors).map((CodedError) => {
    const { code, statusCode } = instance(CodedError as ErrorClass)
    return { code: codeOf({ code }), status: statusCode ?? 500 }
  })
}

/**
 * The error answers of an operation by status, with an example for each code.
 *
 * @param values what stands for `%s` where this operation has better examples
 */
export function errorAnswers (classes: Iterable<ErrorClass>, values: Record<string, unknown[]>): Record<string, Answer> {
  const answers: Record<string, Answer & { content: { 'application/json': { examples: Record<string, { value: unknown }> } } }> = {}
  for (const CodedError of classes) {
    const error = instance(CodedError, values)
    const code = codeOf(error)
    const status = error.statusCode ?? 500
    const answer = answers[status] ??= {
      description: DESCRIPTIONS[status] ?? error.message,
      headers: { 'Request-Id': always('Request-Id') },
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples: {} } as never }
    }
    answer.content['application/json'].examples[code] = { value: { code, message: error.message, status } }
    Object.assign(answer.headers!, headersOf(CodedError))
  }
  return answers
}

/** The fields that an answer owes to its code; see `answerErrors`. */
function headersOf (CodedError: ErrorClass): Answer['headers'] {
  switch (CodedError) {
    case errors.Unauthorized:
    case errors.ReadOnlyKey:
      return { 'WWW-Authenticate': always('WWW-Authenticate') }
    case errors.IdempotencyKeyInUse:
      return { 'Retry-After': sometimes('Retry-After') }
    case errors.Overloaded:
    case errors.DatabaseUnavailable:
    case errors.ShuttingDown:
      return { 'Retry-After': always('Retry-After') }
    case errors.RateLimited:
      return { 'Retry-After': always('Retry-After'), RateLimit: certainly('RateLimit'), 'RateLimit-Policy': certainly('RateLimit-Policy') }
    default:
      return {}
  }
}

function instance (CodedError: ErrorClass, values: Record<string, unknown[]> = {}): CodedError {
  const code = codeOf(new CodedError() as unknown as CodedError)
  return new CodedError(...values[code] ?? VALUES[code] ?? []) as unknown as CodedError
}
