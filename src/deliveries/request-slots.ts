/** Limits the requests in flight in this process: bounds its sockets. */
const MAX_REQUESTS = 500

/** Number of requests in flight that each account can have, whatever the others have, while 20 accounts deliver. */
const ACCOUNT_REQUESTS = 20

/** Limits the requests in flight beyond `ACCOUNT_REQUESTS`, all accounts together. */
const EXTRA_REQUESTS = 80

/**
 * Limits the requests in flight to one host and port, all accounts together, so that many accounts cannot turn the
 * service against a host that never agreed to its calls. Each account may have one, so that none keeps the others away.
 */
const HOST_REQUESTS = 20

/** The owner and the receiver of a request. The host is `undefined` before the first claim of a webhook. */
export interface Caller { account: number, host: string | undefined }

/**
 * Shares the requests in flight of a delivery worker between accounts, so that an account whose receivers are slow
 * does not delay the deliveries of the others.
 */
export interface RequestSlots {
  /** Returns the number of requests that an account may start to a host now. */
  freeFor: (caller: Caller) => number
  take: (caller: Caller) => void
  /** Frees a slot, and resumes callbacks that wait for one. */
  free: (caller: Caller) => void
  /** Calls back once when the account may start a request. A callback that already waits is not added again. */
  wait: (caller: Caller, resume: () => void) => void
}

/** Returns the host and the port of a URL, in one notation. */
export function hostOf (url: string): string {
  const { protocol, hostname, port } = new URL(url)
  return `${hostname.replace(/\.$/, '')}:${port === '' ? protocol === 'https:' ? 443 : 80 : port}`
}

export function createRequestSlots (): RequestSlots {
  const byAccount = new Map<number, number>()
  const byHost = new Map<string, number>()
  const byBoth = new Map<string, number>()
  /** By account; accounts that wait are served in turn. */
  const waiting = new Map<number, Map<() => void, Caller>>()
  let total = 0
  let extra = 0

  function freeFor ({ account, host }: Caller): number {
    const guaranteed = Math.max(0, ACCOUNT_REQUESTS - (byAccount.get(account) ?? 0))
    const free = Math.min(MAX_REQUESTS - total, guaranteed + EXTRA_REQUESTS - extra)
    if (host === undefined) return free
    const own = byBoth.has(`${account} ${host}`) ? 0 : 1
    return Math.min(free, Math.max(own, HOST_REQUESTS - (byHost.get(host) ?? 0)))
  }

  function change ({ account, host }: Caller, by: 1 | -1): void {
    const after = count(byAccount, account, by)
    total += by
    extra += Math.max(0, after - ACCOUNT_REQUESTS) - Math.max(0, after - by - ACCOUNT_REQUESTS)
    if (host === undefined) return
    count(byHost, host, by)
    count(byBoth, `${account} ${host}`, by)
  }

  /** Resumes as many callbacks of each account as it may start requests. The accounts take turns. */
  function resumeWaiting (): void {
    for (const [account, callbacks] of [...waiting]) {
      let left = freeFor({ account, host: undefined })
      const resumed: Array<() => void> = []
      const hosts = new Map<string | undefined, number>()
      for (const [resume, caller] of callbacks) {
        const ofHost = hosts.get(caller.host) ?? freeFor(caller)
        if (left < 1) break
        if (ofHost < 1) continue
        hosts.set(caller.host, ofHost - 1)
        left--
        resumed.push(resume)
      }
      if (resumed.length === 0) continue
      waiting.delete(account)
      for (const resume of resumed) callbacks.delete(resume)
      if (callbacks.size > 0) waiting.set(account, callbacks)
      for (const resume of resumed) resume()
    }
  }

  return {
    freeFor,
    take: (caller) => { change(caller, 1) },
    free (caller) {
      change(caller, -1)
      resumeWaiting()
    },
    wait (caller, resume) {
      const callbacks = waiting.get(caller.account) ?? new Map<() => void, Caller>()
      waiting.set(caller.account, callbacks.set(resume, caller))
    }
  }
}

/** Adds to a count, and forgets it at 0. @returns the new count */
function count<Key> (counts: Map<Key, number>, key: Key, by: 1 | -1): number {
  const after = (counts.get(key) ?? 0) + by
  if (after === 0) counts.delete(key)
  else counts.set(key, after)
  return after
}
