import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { timeText, type AccountClocks } from '../database/account-clocks.ts'
import type { Read } from '../database/reads/query.ts'
import { findActiveStates, findChanges, findStateOf, type AccountState } from './queries.ts'
import { matches, type Target } from './rules.ts'

/** Interval of polls for changes by other processes: a fault works in every process within a second. */
const POLL_MS = 400

/**
 * A poll looks for changes since this time before the last one: a change is marked with the time of its transaction,
 * which may commit later, and on a machine whose clock differs.
 */
const OVERLAP_MS = 15_000

/** Accounts whose states a poll reads at once. Each has up to 100 faults, and requests get their turn in between. */
const ACCOUNTS_PER_READ = 10

/**
 * What this process knows of the faults, the clocks, the journals and the limits of accounts. Accounts that have none
 * have no entry, so their requests pay nothing for them.
 */
export interface AccountStates {
  /** Whether the account has open faults. */
  hasFaults: (account: number) => boolean
  /** Whether a fault of the account may hit the request. The database decides. */
  mayHit: (account: number, target: Target) => boolean
  /** How many requests the journal of the account keeps, if it is on. */
  journalOf: (account: number) => number | undefined
  /** Whether the account has set limits. */
  hasLimits: (account: number) => boolean
  /** Whether it keeps anything of the account in memory. */
  knows: (account: number) => boolean
  /** Reads the state of one account. */
  refresh: (account: number) => Promise<void>
  /** Reads it here and in the other worker processes, so that all who share a port know of a change at once. */
  refreshAll: (account: number) => Promise<void>
  /** Reads the state of all accounts, and then the changes at an interval. */
  start: () => Promise<void>
  stop: () => void
}

interface Options {
  read: Read
  clocks: AccountClocks
  log: FastifyBaseLogger
  siblings?: FastifyInstance['siblings']
  /** `POLL_MS` by default. */
  pollMs?: number
}

export function createAccountStates (
  { read, clocks, log, siblings, pollMs = POLL_MS }: Options
): AccountStates {
  const faults = new Map<number, AccountState['faults']>()
  const journals = new Map<number, number>()
  const limited = new Set<number>()
  /** The change of each account that a poll has read. */
  const seen = new Map<number, string>()
  /** Number of the newest read of each account that has returned, while any read is in flight. */
  const newest = new Map<number, number>()
  let reads = 0
  let readsInFlight = 0
  let timer: NodeJS.Timeout | undefined
  let isPolling = false
  /** When the last read of all states, or of the changes, began. */
  let readAt: number | undefined

  function learn ({ account, offsetSeconds, faults: open, journal, limits }: AccountState): void {
    clocks.advance(account, offsetSeconds * 1000)
    if (open.length > 0) faults.set(account, open)
    else faults.delete(account)
    if (journal !== null) journals.set(account, journal)
    else journals.delete(account)
    if (limits) limited.add(account)
    else limited.delete(account)
  }

  /** Forgets the faults that have ended: a clock never goes back. */
  function openFaultsOf (account: number): AccountState['faults'] {
    const known = faults.get(account) ?? []
    if (known.every(({ endsAt }) => endsAt === null)) return known
    const now = timeText(clocks.now(account))
    const open = known.filter(({ endsAt }) => endsAt === null || endsAt > now)
    if (open.length > 0) faults.set(account, open)
    else faults.delete(account)
    return open
  }

  /** Ignores what it read if a read that began later has returned before: that one knows more. */
  async function refresh (account: number): Promise<void> {
    const number = ++reads
    readsInFlight++
    try {
      const state = await findStateOf(read, account)
      if (number < (newest.get(account) ?? 0)) return
      newest.set(account, number)
      learn(state ?? { account, offsetSeconds: 0, faults: [], journal: null, limits: false })
      if (state === undefined) clocks.forget(account)
    } finally {
      if (--readsInFlight === 0) newest.clear()
    }
  }

  /** Reads the states of accounts that have changed since they were read. */
  async function readChanges (since: number): Promise<void> {
    const changes = await findChanges(read, new Date(since).toISOString())
    const recent = new Set(changes.map(({ account }) => account))
    for (const account of seen.keys()) if (!recent.has(account)) seen.delete(account)
    const unseen = changes.filter(({ account, changedAt }) => seen.get(account) !== changedAt)
    for (let start = 0; start < unseen.length; start += ACCOUNTS_PER_READ) {
      await Promise.all(unseen.slice(start, start + ACCOUNTS_PER_READ).map(async ({ account, changedAt }) => {
        await refresh(account)
        seen.set(account, changedAt)
      }))
    }
  }

  /** Reads all states until that has succeeded once, and then the changes. */
  async function poll (): Promise<void> {
    if (isPolling) return
    isPolling = true
    try {
      const now = Date.now()
      // The machine's clock may have been set since.
      if (readAt !== undefined) await readChanges(Math.min(now, readAt) - OVERLAP_MS)
      else for (const state of await findActiveStates(read)) learn(state)
      readAt = now
    } catch (error) {
      log.warn({ err: error }, 'cannot read the state of the lab; the next poll reads it')
    } finally {
      isPolling = false
    }
  }

  siblings?.onCall('lab', async (account) => { await refresh(account as number) })

  return {
    hasFaults: (account) => faults.size > 0 && faults.has(account),
    mayHit: (account, target) => faults.size > 0 && openFaultsOf(account).some((fault) => matches(fault, target)),
    journalOf: (account) => journals.size > 0 ? journals.get(account) : undefined,
    hasLimits: (account) => limited.size > 0 && limited.has(account),
    knows: (account) =>
      faults.has(account) || journals.has(account) || limited.has(account) || clocks.offsetOf(account) > 0,
    refresh,
    async refreshAll (account) { await Promise.all([refresh(account), siblings?.tell('lab', account)]) },
    async start () {
      await poll()
      timer = setInterval(() => { void poll() }, pollMs).unref()
    },
    stop: () => { clearInterval(timer) }
  }
}
