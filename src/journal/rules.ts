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

/** An attempt in the journal. */
export interface Attempt {
  id: number
  /** The first attempt, if this is not it. */
  attemptOf?: number | undefined
  endedMs: number
}

/**
 * Returns how a request is related to the last one with the same key, or with the same content.
 *
 * @param startedMs when it began, in real time
 */
export function attemptAfter (
  last: Attempt | undefined, startedMs: number, isKeyed: boolean
): { attemptOf: number, pauseMs: number } | undefined {
  if (last === undefined) return undefined
  const pauseMs = Math.max(0, startedMs - last.endedMs)
  if (!isKeyed && pauseMs > MAX_PAUSE_MS) return undefined
  return { attemptOf: last.attemptOf ?? last.id, pauseMs }
}
