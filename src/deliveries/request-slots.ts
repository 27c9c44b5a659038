/** Limits the requests in flight in this process: bounds its sockets. */
const MAX_REQUESTS = 500

/** Number of requests in flight that each account can have, whatever the others have, while 20 accounts deliver. */
const ACCOUNT_REQUESTS = 20

/** Limits the requests in flight beyond `ACCOUNT_REQUESTS`, all accounts together. */
const EXTRA_REQUESTS = 80

/**
 * Shares the requests in flight of a delivery worker between accounts, so that an account whose receivers are slow
 * does not delay the deliveries of the others.
 */
export interface RequestSlots {
  /** Returns the number of requests that an account may start now. */
  freeFor: (account: number) => number
  take: (account: number) => void
  /** Frees a slot, and resumes callbacks that wait for one. */
  free: (account: number) => void
  /** Calls back once when the account may start a request. A callback that already waits is not added again. */
  wait: (account: number, resume: () => void) => void
}

export function createRequestSlots (): RequestSlots {
  const inFlight = new Map<number, number>()
  /** By account; accounts that wait are served in turn. */
  const waiting = new Map<number, Set<() => void>>()
  let total = 0
  let extra = 0

  function freeFor (account: number): number {
    const guaranteed = Math.max(0, ACCOUNT_REQUESTS - (inFlight.get(account) ?? 0))
    return Math.min(MAX_REQUESTS - total, guaranteed + EXTRA_REQUESTS - extra)
  }

  function change (account: number, by: 1 | -1): void {
    const before = inFlight.get(account) ?? 0
    const after = before + by
    total += by
    extra += Math.max(0, after - ACCOUNT_REQUESTS) - Math.max(0, before - ACCOUNT_REQUESTS)
    if (after === 0) inFlight.delete(account)
    else inFlight.set(account, after)
  }

  /** Resumes as many callbacks of each account as it may start requests. The accounts take turns. */
  function resumeWaiting (): void {
    for (const [account, callbacks] of [...waiting]) {
      const resumed = [...callbacks].slice(0, Math.max(0, freeFor(account)))
      if (resumed.length === 0) continue
      waiting.delete(account)
      for (const resume of resumed) callbacks.delete(resume)
      if (callbacks.size > 0) waiting.set(account, callbacks)
      for (const resume of resumed) resume()
    }
  }

  return {
    freeFor,
    take: (account) => { change(account, 1) },
    free (account) {
      change(account, -1)
      resumeWaiting()
    },
    wait (account, resume) {
      const callbacks = waiting.get(account) ?? new Set()
      waiting.set(account, callbacks.add(resume))
    }
  }
}
