import type { FastifyBaseLogger } from 'fastify'
import type { AccountClocks } from '../database/account-clocks.ts'
import type { Read } from '../database/reads/query.ts'
import { findActiveStates, findChangedStates, findStateOf, type AccountState } from './queries.ts'
import { matches, type Target } from './rules.ts'

/** Interval of polls for changes by other processes: a fault works in every process within a second. */
const POLL_MS = 400

/**
 * A poll reads the changes of this time again: a change is marked with the time of its transaction, which may commit
 * later, and on a machine whose clock differs.
 */
const OVERLAP_MS = 15_000

/**
 * What this process knows of the faults and the clocks of accounts. Accounts without an open fault have no entry, so
 * their requests pay nothing for faults.
 */
export interface AccountStates {
  /** Whether the account has open faults. */
  hasFaults: (account: number) => boolean
  /** Whether a fault of the account may hit the request. The database decides. */
  mayHit: (account: number, target: Target) => boolean
  /** Reads the state of one account. */
  refresh: (account: number) => Promise<void>
  /** Reads the state of all accounts, and then the changes at an interval. */
  start: () => Promise<void>
  stop: () => void
}

interface Options { read: Read, clocks: AccountClocks, log: FastifyBaseLogger }

export function createAccountStates ({ read, clocks, log }: Options): AccountStates {
  const faults = new Map<number, AccountState['faults']>()
  let timer: NodeJS.Timeout | undefined
  let isPolling = false
  let isComplete = false

  function learn (states: AccountState[]): void {
    for (const { account, offsetSeconds, faults: open } of states) {
      clocks.advance(account, offsetSeconds * 1000)
      if (open.length > 0) faults.set(account, open)
      else faults.delete(account)
    }
  }

  /** Reads all states until that has succeeded once, and then the changes. */
  async function poll (): Promise<void> {
    if (isPolling) return
    isPolling = true
    try {
      learn(isComplete
        ? await findChangedStates(read, new Date(Date.now() - OVERLAP_MS).toISOString())
        : await findActiveStates(read))
      isComplete = true
    } catch (error) {
      log.warn({ err: error }, 'cannot read the state of the lab; the next poll reads it')
    } finally {
      isPolling = false
    }
  }

  return {
    hasFaults: (account) => faults.size > 0 && faults.has(account),
    mayHit: (account, target) =>
      faults.size > 0 && (faults.get(account)?.some((fault) => matches(fault, target)) ?? false),
    refresh: async (account) => { learn(await findStateOf(read, account)) },
    async start () {
      await poll()
      timer = setInterval(() => { void poll() }, POLL_MS).unref()
    },
    stop: () => { clearInterval(timer) }
  }
}
