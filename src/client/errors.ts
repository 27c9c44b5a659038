import type { components } from '../generated/client/openapi.ts'

export type ErrorCode = components['schemas']['Error']['code']

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
  override readonly name = 'ConnectionError'
  /** The status of an answer that does not come from the service, such as the 502 of a gateway. */
  readonly status: number | undefined

  constructor (message: string, { status, cause }: { status?: number, cause?: unknown } = {}) {
    super(message, { cause })
    this.status = status
  }
}

/** Returns the error that an answer without success stands for. */
export function errorOf (body: unknown, response: Response): PetstoreError | ConnectionError {
  const { status, headers } = response
  if (!isErrorBody(body)) {
    return new ConnectionError(`The answer with status ${status} does not come from the service`, { status })
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
export function connectionErrorOf (cause: unknown, timeoutMs?: number): ConnectionError {
  if (timeoutMs !== undefined) return new ConnectionError(`No answer within ${timeoutMs} ms`, { cause })
  // The error of Node's fetch is always "fetch failed", and its cause has the reason.
  const { code, message } = (cause as { cause?: { code?: string, message?: string } }).cause ?? {}
  const reason = message !== undefined && message !== '' ? message : code ?? String(cause)
  return new ConnectionError(`The connection failed, or the answer is broken: ${reason}`, { cause })
}

function isErrorBody (body: unknown): body is { code: ErrorCode, message: string } {
  if (typeof body !== 'object' || body === null) return false
  const { code, message } = body as Record<string, unknown>
  return typeof code === 'string' && typeof message === 'string'
}

/** Reads `Retry-After`, which is a number of seconds or a date (RFC 9110 section 10.2.3). */
function retryAfterOf (headers: Headers): number | undefined {
  const field = headers.get('retry-after')
  if (field === null) return undefined
  const ms = /^\d+$/.test(field) ? Number(field) * 1000 : Date.parse(field) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}
