import { setTimeout as sleep } from 'node:timers/promises'
import { Overloaded } from '../errors.ts'

/** A resend is followed by a pause of this many times its duration, so that it takes a small part of the time. */
const PAUSE_PER_RESEND = 3

/** Limits the resends of an account that wait: as many as it can have webhooks. */
const MAX_WAITING = 20

/** Runs the work of an account when its turn comes. @throws Overloaded when too much of it waits */
export type InTurn = <T>(account: number, work: () => Promise<T>) => Promise<T>

interface Turns {
  /** Ends with the pause after the last work. */
  last: Promise<unknown>
  waiting: number
}

/**
 * Gives each account one resend at a time in this process. A resend writes up to 10,000 rows: without the pauses, an
 * account that repeats them, each time with another webhook, would leave a third of the writes to its neighbours.
 */
export function createResendTurns (): InTurn {
  const byAccount = new Map<number, Turns>()
  return async <T>(account: number, work: () => Promise<T>) => {
    const turns = byAccount.get(account) ?? { last: Promise.resolve(), waiting: 0 }
    if (turns.waiting >= MAX_WAITING) throw new Overloaded()
    byAccount.set(account, turns)
    turns.waiting++
    let durationMs = 0
    const done = turns.last.then(async () => {
      const began = performance.now()
      return await work().finally(() => { durationMs = performance.now() - began })
    })
    turns.last = done.catch(() => {})
      .then(async () => { await sleep(PAUSE_PER_RESEND * durationMs, undefined, { ref: false }) })
      .finally(() => { if (--turns.waiting === 0) byAccount.delete(account) })
    return await done
  }
}
