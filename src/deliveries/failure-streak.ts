import type { DeliveryResult } from '../monitoring/instrumentation.ts'
import type { WebhookAttempt } from './schemas.ts'

/** A webhook is disabled after so many failed attempts in a row, once they have lasted for `MIN_DURATION_MS`. */
const MAX_FAILURES = 50

/** As long as one delivery is retried. */
const MIN_DURATION_MS = 24 * 60 * 60 * 1000

/** The failed attempts of a webhook since the last one that was accepted. */
export interface FailureStreak {
  failures: number
  /** Time of the first one, by the clock of the account; `null` without one. */
  failingSince: string | null
  /** The webhook must be disabled. */
  hasFailedForLong: boolean
}

/** Returns a streak after another attempt, whose time is by the clock of the account, as the pauses before it were. */
export function streakAfter (
  { failures, failingSince, hasFailedForLong }: FailureStreak,
  { result, attempt }: { result: DeliveryResult, attempt?: Pick<WebhookAttempt, 'at'> }
): FailureStreak {
  if (result === 'accepted') return { failures: 0, failingSince: null, hasFailedForLong }
  const { at } = attempt!
  const since = failingSince ?? at
  const lasts = Date.parse(at) - Date.parse(since) >= MIN_DURATION_MS
  return {
    failures: failures + 1,
    failingSince: since,
    hasFailedForLong: hasFailedForLong || (lasts && failures + 1 >= MAX_FAILURES)
  }
}
