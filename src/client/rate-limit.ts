import { retryAfterOf } from './errors.ts'
import type { OperationFacts } from './methods.ts'
import { LONGEST_RETRY_AFTER_MS } from './retries.ts'
import { monotonicNow } from './timers.ts'

/** What the responses to a client said about the limit of its requests. */
export interface RateLimit {
  /** Reads a response. */
  note: (facts: OperationFacts, response: Response) => void
  /** Returns for how long the service refuses requests of an operation, in ms. */
  waitMs: (facts: OperationFacts) => number
}

export function createRateLimit (): RateLimit {
  let endsAt = 0
  return {
    note ({ method, path }, { status, headers }) {
      // The next window begins with the clock of the account, or other limits hold.
      if (method !== 'get' && /^\/lab\/(clock|limits)/.test(path)) endsAt = 0
      const ms = Math.max(untilReset(headers), status === 429 ? retryAfterOf(headers) ?? 0 : 0)
      // After a longer time the caller decides: the request is sent, and its error says how long it is.
      if (ms <= LONGEST_RETRY_AFTER_MS) endsAt = Math.max(endsAt, monotonicNow() + ms)
    },
    // The limits of an account do not count what belongs to the lab.
    waitMs: ({ path }) => path.startsWith('/lab/') ? 0 : endsAt - monotonicNow()
  }
}

/**
 * Reads `RateLimit`, such as `"default";r=0;t=3`, which says how many requests are left and for how many seconds
 * (draft-ietf-httpapi-ratelimit-headers-10 section 4).
 *
 * @returns the time until the next window in ms, or 0 if requests are left
 */
function untilReset (headers: Headers): number {
  const spent = (headers.get('ratelimit') ?? '').split(',').filter((limit) => /;\s*r=0(?!\d)/.test(limit))
  return Math.max(0, ...spent.map((limit) => Number(/;\s*t=(\d+)/.exec(limit)?.[1] ?? 0) * 1000))
}
