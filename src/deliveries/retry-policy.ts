const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/**
 * Pauses after the first attempt, the second attempt and so on, in ms. With the longest jitter they add up to a
 * little less than the day for which a delivery is retried.
 */
const RETRY_SCHEDULE: readonly number[] = [
  5 * SECOND_MS, 30 * SECOND_MS, 2 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS,
  HOUR_MS, 2 * HOUR_MS, 4 * HOUR_MS, 5 * HOUR_MS, 7 * HOUR_MS
]

/** Share by which jitter extends a pause at most, so that deliveries that failed together are retried apart. */
const MAX_JITTER = 0.2

export interface FailedAttempt {
  /** Number of attempts made, this one included. */
  attempts: number
  /** Current time in ms. */
  now: number
  /** Time in ms at which the last attempt is due. */
  expiresAt: number
  /** Pause that the receiver asks for, in ms. */
  retryAfter: number
  /** Random number from 0 to 1 that chooses the jitter. */
  random: number
  /** Pauses by number of attempts, in ms. */
  schedule?: readonly number[] | undefined
}

/** Returns the time in ms of the next attempt, or `undefined` when the delivery has no attempts left. */
export function nextAttemptAt (failed: FailedAttempt): number | undefined {
  const { attempts, now, expiresAt, retryAfter, random, schedule = RETRY_SCHEDULE } = failed
  const pause = schedule[attempts - 1]
  if (pause === undefined || now >= expiresAt) return undefined
  const at = now + Math.max(pause * (1 + MAX_JITTER * random), retryAfter)
  // A receiver that asks for a pause beyond the expiry gets one more attempt, at the expiry.
  return Math.round(Math.min(at, expiresAt))
}

/** Returns the pause that `Retry-After` asks for (RFC 9110 section 10.2.3: seconds or a date), in ms; 0 without one. */
export function retryAfterOf (field: string | undefined, now: number): number {
  if (field === undefined) return 0
  if (/^\d{1,9}$/.test(field)) return Number(field) * SECOND_MS
  const date = Date.parse(field)
  return Number.isNaN(date) ? 0 : Math.max(0, date - now)
}

/** `gone`: the receiver wants no more events. `refused`: the attempt may be repeated. */
export type ResponseClass = 'accepted' | 'gone' | 'refused'

/** Classifies a response by its status. A redirection is refused, because the client does not follow it. */
export function classifyResponse (status: number | undefined): ResponseClass {
  if (status === undefined) return 'refused'
  if (status >= 200 && status < 300) return 'accepted'
  return status === 410 ? 'gone' : 'refused'
}
