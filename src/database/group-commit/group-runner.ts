import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseUnavailable, IdempotencyKeyInUse } from '../../errors.ts'
import type { Database } from '../database.ts'
import { classifyError, failureOf } from '../error-classification.ts'
import { Turns } from '../turns.ts'
import type { QueuedCommand } from './command.ts'
import { runInTransaction, type CommittedGroup, type GroupTransactionOptions } from './group-transaction.ts'

/** Pause before another attempt of a write that waits for a lock, in ms. */
const RETRY_MS = 50

interface GroupRunnerOptions extends GroupTransactionOptions {
  /** How long a write may wait, in ms. */
  timeout: number
}

/** Runs groups of writes. When a group fails, its writes are separated until the one at fault is alone. */
export class GroupRunner {
  readonly #database: Database
  readonly #options: GroupRunnerOptions
  readonly #onCommit: (committed: CommittedGroup) => void
  /**
   * Writes that met a conflict alone, with the last error of each: mostly, another process has locked their
   * Idempotency-Key or row. No group and no other write waits for them.
   */
  readonly #waiting = new Map<QueuedCommand, unknown>()
  readonly #turns = new Turns()

  /** @param onCommit called with what is committed while other parts of its group still run, or after it waited */
  constructor (database: Database, options: GroupRunnerOptions, onCommit: (committed: CommittedGroup) => void) {
    this.#database = database
    this.#options = options
    this.#onCommit = onCommit
  }

  /** Refuses the writes that arrived at a time or before and wait for a lock. */
  rejectWaiters (latest: number): void {
    for (const [entry, error] of this.#waiting) {
      if (entry.since > latest) continue
      this.#waiting.delete(entry)
      entry.reject(failureOf(error))
    }
  }

  /**
   * Runs a group: first the writes that decide in memory, then the commands with statements of their own.
   *
   * @returns what is committed and not passed to `onCommit`; the other writes are answered, or wait for a lock
   */
  async run (group: QueuedCommand[]): Promise<CommittedGroup | undefined> {
    const writes = group.filter(({ command }) => 'decide' in command)
    if (writes.length === 0 || writes.length === group.length) return await this.#commit(group)
    const committed = await this.#commit(writes)
    if (committed !== undefined) this.#onCommit(committed)
    return await this.#commit(group.filter(({ command }) => !('decide' in command)))
  }

  /**
   * Runs writes of one sort. One bad command fails its whole transaction, so a part that fails is halved: first between
   * accounts, until those that have nothing to do with the failure are committed. Then the writes of each account that
   * is left are halved in their order.
   */
  async #commit (group: QueuedCommand[]): Promise<CommittedGroup | undefined> {
    const shared = [group]
    const own: QueuedCommand[][] = []
    for (let part; (part = shared.shift() ?? own.shift()) !== undefined;) {
      const late = part.filter(this.#isLate)
      if (late.length > 0) rejectAll(late, new DatabaseUnavailable())
      const timely = part.filter((entry) => !late.includes(entry))
      if (timely.length === 0) continue
      const outcome = await this.#attempt(timely)
      if (outcome === 'failed together') {
        const accounts = [...new Set(timely.map(({ context: { account } }) => account))]
        if (accounts.length > 1) shared.push(...halvesByAccount(timely, accounts))
        else own.unshift(...halvesOf(timely))
      } else if (part === group) {
        return outcome
      } else if (outcome !== undefined) {
        this.#onCommit(outcome)
      }
    }
    return undefined
  }

  /** Runs writes in a transaction. @returns `undefined` if they are answered, or one write waits for another try */
  async #attempt (group: QueuedCommand[]): Promise<CommittedGroup | 'failed together' | undefined> {
    try {
      return await runInTransaction(this.#database, group, this.#options)
    } catch (error) {
      const kind = error instanceof IdempotencyKeyInUse ? 'conflict' : classifyError(error)
      if (kind === 'unavailable') rejectAll(group, new DatabaseUnavailable({ cause: error }))
      else if (group.length > 1) return 'failed together'
      else if (kind === 'conflict') void this.#retryLater(group[0]!, error)
      else group[0]!.reject(failureOf(error))
      return undefined
    }
  }

  /** Tries a write again: those that wait take turns, so that they use one connection. */
  async #retryLater (entry: QueuedCommand, error: unknown): Promise<void> {
    this.#waiting.set(entry, error)
    const endTurn = await this.#turns.take()
    // It may have been refused, before its turn or meanwhile.
    if (this.#waiting.has(entry)) await sleep(RETRY_MS)
    if (this.#waiting.delete(entry)) {
      const committed = await this.#commit([entry])
      if (committed !== undefined) this.#onCommit(committed)
    }
    endTurn()
  }

  readonly #isLate = ({ since }: QueuedCommand): boolean => performance.now() - since > this.#options.timeout
}

export function rejectAll (entries: QueuedCommand[], error: unknown): void {
  for (const entry of entries) entry.reject(error)
}

function halvesOf<Item> (items: Item[]): [Item[], Item[]] {
  const middle = Math.ceil(items.length / 2)
  return [items.slice(0, middle), items.slice(middle)]
}

/** Returns the writes of half of the accounts, and those of the others. */
function halvesByAccount (group: QueuedCommand[], accounts: Array<number | null>): QueuedCommand[][] {
  return halvesOf(accounts).map((half) => group.filter(({ context: { account } }) => half.includes(account)))
}
