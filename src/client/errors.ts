import type { components } from '../generated/client/openapi.ts'
import { now } from './timers.ts'

export type ErrorCode = components['schemas']['Error']['code']

/**
 * Lets `instanceof` recognize errors of another copy of this package: a program can load `petstore` and
 * `petstore/client`, or two versions.
 */
function brand (type: abstract new (...args: never[]) => Error, name: string): void {
  const mark = Symbol.for(`petstore.${name}`)
  Object.defineProperty(type.prototype, mark, { value: true })
  Object.defineProperty(type, Symbol.hasInstance, {
    value (this: unknown, value: unknown) {
      // A subclass of a program inherits this method.
      if (this !== type) return Function.prototype[Symbol.hasInstance].call(this, value)
      return typeof value === 'object' && value !== null && mark in value
    }
  })
}

/** What an error answer says, besides its message. */
export interface ErrorFacts {
  code: ErrorCode
  status: number
  requestId: string | undefined
  retryAfterMs: number | undefined
  response: Response
}

/** An error answer of the service. Branch on `code`: the list of codes is closed, and messages may change. */
export class PetstoreError extends Error {
  override readonly name = 'PetstoreError'
  readonly code: ErrorCode
  readonly status: number
  /** The `Request-Id` of the answer, by which the operator finds the request in the logs. */
  readonly requestId: string | undefined
  /** The pause that the service asks for in `Retry-After`. */
  readonly retryAfterMs: number | undefined
  readonly response: Response

  static { brand(this, 'PetstoreError') }

  constructor (message: string, { code, status, requestId, retryAfterMs, response }: ErrorFacts) {
    super(message)
    this.code = code
    this.status = status
    this.requestId = requestId
    this.retryAfterMs = retryAfterMs
    this.response = response
  }
}

/**
 * The client has no complete answer of the service: the connection broke, the time ran out, or something between the
 * two answered. A write can have taken effect all the same.
 */
export class ConnectionError extends Error {
  override readonly name: string = 'ConnectionError'
  /** The status of an answer that does not come from the service, such as the 502 of a gateway. */
  readonly status: number | undefined

  static { brand(this, 'ConnectionError') }

  constructor (message: string, { status, cause }: { status?: number, cause?: unknown } = {}) {
    super(message, { cause })
    this.status = status
  }
}

/** The answer names another address, to which the client does not send the request. The request had no effect. */
export class RedirectError extends ConnectionError {
  override readonly name = 'RedirectError'
  /** The address that the answer names. Browsers hide it. */
  readonly location: string | undefined

  static { brand(this, 'RedirectError') }

  constructor (status: number, location: string | undefined) {
    const remedy = 'Give createClient the url to which the service redirects'
    super(`The service redirects${location === undefined ? '' : ` to ${location}`}. ${remedy}`, { status })
    this.location = location
  }
}

/** The request does not come from the webhook, or is too old. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'

  static { brand(this, 'WebhookVerificationError') }
}

/** Returns the error that an answer without success stands for. */
export function errorOf (body: unknown, response: Response): PetstoreError | ConnectionError {
  const { status, headers } = response
  if (!isErrorBody(body, status)) {
    return new ConnectionError(`The response with status ${status} does not come from the service`, { status })
  }
  return new PetstoreError(body.message, {
    code: body.code,
    status,
    requestId: headers.get('request-id') ?? undefined,
    retryAfterMs: retryAfterOf(headers),
    response
  })
}

/** Returns the error that a failed `fetch`, or a broken answer, stands for. */
export function connectionErrorOf (error: unknown): ConnectionError {
  // The error of Node's fetch is always "fetch failed", and its cause has the reason.
  const { code, message } = (error as { cause?: { code?: string, message?: string } } | undefined)?.cause ?? {}
  const reason = message !== undefined && message !== '' ? message : code ?? String(error)
  return new ConnectionError(`The connection failed, or the response is broken: ${reason}`, { cause: error })
}

function isErrorBody (body: unknown, answered: number): body is { code: ErrorCode, message: string } {
  if (typeof body !== 'object' || body === null) return false
  const { code, message, status } = body as Record<string, unknown>
  return typeof code === 'string' && typeof message === 'string' && status === answered
}

/**
 * Reads `Retry-After`, which is a number of seconds or a date by the clock of the service (RFC 9110 section 10.2.3).
 * Browsers can hide what its clock shows.
 */
export function retryAfterOf (headers: Headers): number | undefined {
  const field = headers.get('retry-after')
  if (field === null) return undefined
  const sentAt = Date.parse(headers.get('date') ?? '') || now()
  const ms = /^\d+$/.test(field) ? Number(field) * 1000 : Date.parse(field) - sentAt
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}
