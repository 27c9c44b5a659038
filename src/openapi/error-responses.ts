import * as errors from '../errors.ts'
import type { ErrorClass } from '../errors.ts'
import type { Answer } from './document.ts'
import { always, sometimes } from './headers.ts'

const DESCRIPTIONS: Record<number, string> = {
  400: 'The request is malformed or breaks a validation rule; the message names the field and the rule.',
  401: 'The API key is missing, not in bearer form, unknown, revoked or expired.',
  403: 'The API key is not allowed to do this.',
  404: 'Your store has no such record.',
  408: 'The request did not arrive in time.',
  409: 'The request conflicts with the current state; nothing was changed.',
  410: 'The resource is no longer available.',
  412: 'The current ETag does not satisfy `If-Match` or `If-None-Match`; nothing was changed.',
  413: 'The request body is too large.',
  414: 'The request target is too long.',
  422: 'The `Idempotency-Key` was used for a different request.',
  429: 'The client sent too many requests.',
  431: 'The header fields are too large.',
  500: 'The service failed because of a defect.',
  502: 'A fault of the lab replaced the response.',
  504: 'A fault of the lab replaced the response.',
  503: 'The service cannot respond now. A write may have taken effect: repeat it with its `Idempotency-Key`, ' +
    'where the operation accepts one.'
}

/** The body of an error response, as an example. */
export interface ErrorExample { code: string, message: string, status: number }

type ErrorAnswer = Answer & { content: { 'application/json': { examples: Record<string, { value: ErrorExample }> } } }

/** The documents of a service ask for some examples a hundred times, and an error captures a stack. */
const exampleOfClass = new Map<ErrorClass, ErrorExample>()

/** Returns an example of an error. */
export function exampleOfError (CodedError: ErrorClass): ErrorExample {
  let example = exampleOfClass.get(CodedError)
  if (example === undefined) {
    const error = new CodedError(...CodedError.exampleValues as [])
    example = { code: errors.publicCode(error), message: error.message, status: error.statusCode ?? 500 }
    exampleOfClass.set(CodedError, example)
  }
  return { ...example }
}

/** Sorts errors by status and then by code. */
export function inOrder (examples: ErrorExample[]): ErrorExample[] {
  return examples.toSorted((a, b) => a.status - b.status || (a.code < b.code ? -1 : 1))
}

/** Returns the error responses of an operation by status, with an example for each code. */
export function errorAnswers (classes: Iterable<ErrorClass>): Record<string, Answer> {
  const answers: Record<string, ErrorAnswer> = {}
  // A code can have several statuses.
  const keyOf = ({ code, status }: ErrorExample): string => `${code} ${status}`
  const byKey = new Map([...classes].map((CodedError) => [keyOf(exampleOfError(CodedError)), CodedError]))
  for (const example of inOrder([...byKey.values()].map((CodedError) => exampleOfError(CodedError)))) {
    const answer = answers[example.status] ??= {
      description: DESCRIPTIONS[example.status] ?? example.message,
      headers: { 'Request-Id': always('Request-Id') },
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples: {} } as never }
    }
    answer.content['application/json'].examples[example.code] = { value: example }
    Object.assign(answer.headers!, headersOf(byKey.get(keyOf(example))!))
  }
  return answers
}

/** Returns the header fields that the error handler sets for the error. */
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
      return {
        'Retry-After': always('Retry-After'),
        RateLimit: always('RateLimit'),
        'RateLimit-Policy': always('RateLimit-Policy')
      }
    default:
      return {}
  }
}
