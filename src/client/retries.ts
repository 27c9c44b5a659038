import { ConnectionError, PetstoreError } from './errors.ts'
import { clearTimeout, createController, setTimeout, untilAborted } from './timers.ts'

export interface RetryPolicy {
  /** How often a request is sent again after its first attempt. */
  retries: number
  /** The time for an attempt, with its answer. */
  timeoutMs: number
  signal: AbortSignal | undefined
  /** Returns for how long the service would refuse the request, in ms. */
  waitMs: () => number
}

/** The pause before the first retry. Each later pause is up to twice as long. */
const FIRST_PAUSE_MS = 250

/** Longer pauses would not make the service recover sooner. */
const LONGEST_PAUSE_MS = 8_000

/** A service that asks for a longer pause than this gets no retry: the caller decides. */
export const LONGEST_RETRY_AFTER_MS = 60_000

/** Statuses after which the same request can succeed. */
const TRANSIENT = new Set([408, 429, 500, 502, 503, 504])

/**
 * Sends a request until it is answered, and pauses between the attempts. Only what the network or the service did is
 * tried again: an error of another class is thrown as it is.
 *
 * @param isRepeatable if false, the request is sent again only if it had no effect for certain
 * @throws {PetstoreError | ConnectionError} of the last attempt, or the reason of an aborted signal
 */
export async function withRetries<T> (
  { retries, timeoutMs, signal, waitMs }: RetryPolicy, isRepeatable: boolean, send: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    // A call without retries gets the error at once.
    if (retries > 0) await untilAllowed(waitMs, signal)
    const late = new ConnectionError(`No response within ${timeoutMs} ms`)
    try {
      return await inTime(send, timeoutMs, late, signal)
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason
      if (!(error instanceof PetstoreError || error instanceof ConnectionError)) throw error
      if (attempt >= retries || !mayRetry(error, isRepeatable)) throw error
      await pause(pauseAfter(error, attempt), signal)
    }
  }
}

/** Waits until the service accepts the request. Others that wait must not be sent at the same time. */
export async function untilAllowed (waitMs: () => number, signal: AbortSignal | undefined): Promise<void> {
  for (let ms = waitMs(); ms > 0; ms = waitMs()) await pause(ms + Math.random() * FIRST_PAUSE_MS, signal)
}

/** Calls a function with a signal that is aborted with `late` after a time, and when the other signal is aborted. */
async function inTime<T> (
  send: (signal: AbortSignal) => Promise<T>, ms: number, late: Error, signal: AbortSignal | undefined
): Promise<T> {
  const controller = createController()
  const abort = (): void => { controller.abort(signal?.reason) }
  if (signal?.aborted === true) abort()
  signal?.addEventListener('abort', abort)
  const timer = setTimeout(() => { controller.abort(late) }, ms)
  try {
    return await untilAborted(send(controller.signal), controller.signal)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

/** Tells whether another attempt can bring an answer, and soon enough. */
export function isTransient (error: unknown): boolean {
  if (error instanceof PetstoreError) {
    const { code, status, retryAfterMs = 0 } = error
    return retryAfterMs <= LONGEST_RETRY_AFTER_MS && (TRANSIENT.has(status) || code === 'idempotency_key_in_use')
  }
  return error instanceof ConnectionError && (error.status === undefined || TRANSIENT.has(error.status))
}

/** Returns the pause after an attempt: what the service asks for, or a random share of a growing time. */
export function pauseAfter (error: unknown, attempt: number): number {
  const asked = error instanceof PetstoreError ? error.retryAfterMs : undefined
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt)
  // Clients that failed at the same time must not return at the same time, also after the same Retry-After.
  return (asked ?? longest / 2) + Math.random() * longest / 2
}

/** Waits. Throws the reason of the signal as soon as it is aborted. */
export async function pause (ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    // The caller decides what the reason is. An Error is the default.
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
    const abort = (): void => { clearTimeout(timer); reject(signal?.reason) }
    if (signal?.aborted === true) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}

function mayRetry (error: PetstoreError | ConnectionError, isRepeatable: boolean): boolean {
  // The rate limit refuses a request before it can have an effect.
  const hadNoEffect = error instanceof PetstoreError && error.status === 429
  return (isRepeatable || hadNoEffect) && isTransient(error)
}
