import type { Outcome } from './schemas.ts'

/** What is known of a response when its connection or its last byte is done. */
export interface ResponseEnd {
  /** The type of the effect of the fault that hit the request. */
  effect: string | undefined
  /** The status, if any byte was sent. */
  status: number | undefined
  /** Whether the system took all bytes of the response. */
  isFinished: boolean
  /** Whether all bytes of the body were sent, although the response did not finish. */
  isWhole: boolean
  /** Whether the service itself closed the connection. */
  isClosedHere: boolean
}

/** Effects that close the connection of a response. */
const CLOSING = ['reset', 'lose_answer', 'truncate']

export function outcomeOf ({ effect = '', status, isFinished, isWhole, isClosedHere }: ResponseEnd): Outcome {
  if (status === undefined) {
    if (effect === 'lose_answer') return 'lost'
    return effect === 'reset' ? 'refused' : 'left'
  }
  if (!isFinished) {
    if (!CLOSING.includes(effect) || !isClosedHere) return 'left'
    return isWhole ? 'answered' : 'cut'
  }
  // The service handled a request whose answer was replaced.
  const isRefused = effect === 'refuse' || (effect !== 'replace_answer' && (status === 429 || status === 503))
  return isRefused ? 'refused' : 'answered'
}

/** Attempts without an Idempotency-Key belong together if the pause between them is no longer. */
const MAX_PAUSE_MS = 60_000

/** An attempt of a request, and its link to the attempt that began before it. Times are real, in ms. */
export interface Attempt {
  id: number
  startedMs: number
  endedMs: number
  idempotencyKey?: string | undefined
  /** What `Retry-After` of its response asked for. */
  retryAfterMs?: number | undefined
  /** The attempt that began first, if this is not it. */
  attemptOf?: number | undefined
  /** The time since the attempt before it ended. */
  pauseMs?: number | undefined
  /** What `Retry-After` of the attempt before it asked for. */
  askedMs?: number | undefined
}

/**
 * Links attempts of one request, each to the one that began before it. The first one keeps its link: it has none, or
 * its own to an attempt that is not among these.
 *
 * @returns those whose link has changed
 */
export function linkAttempts (attempts: Attempt[]): Attempt[] {
  attempts.sort((a, b) => a.startedMs - b.startedMs || a.id - b.id)
  const changed: Attempt[] = []
  for (let i = 1; i < attempts.length; i++) {
    const last = attempts[i - 1]!
    const attempt = attempts[i]!
    const { attemptOf, pauseMs, askedMs } = attempt
    const pause = Math.max(0, attempt.startedMs - last.endedMs)
    const isFirst = attempt.idempotencyKey === undefined && pause > MAX_PAUSE_MS
    attempt.attemptOf = isFirst ? undefined : last.attemptOf ?? last.id
    attempt.pauseMs = isFirst ? undefined : pause
    attempt.askedMs = isFirst ? undefined : last.retryAfterMs
    const isLinked = attempt.attemptOf === attemptOf && attempt.pauseMs === pauseMs && attempt.askedMs === askedMs
    if (!isLinked) changed.push(attempt)
  }
  return changed
}
