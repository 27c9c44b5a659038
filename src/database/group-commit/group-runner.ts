import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseUnavailable, IdempotencyKeyInUse } from '../../errors.ts'
import type { Database } from '../database.ts'
import { classifyError, failureOf, isLockTimeout } from '../error-classification.ts'
import type { QueuedCommand } from './command.ts'
import { runInTransaction, type CommittedGroup, type GroupTransactionOptions } from './group-transaction.ts'
import { IdempotencyKeyLocked } from '../unit-of-work/first-message.ts'
import { createLockWaiters, type LockWaiters } from './lock-waiters.ts'

interface GroupRunnerOptions extends GroupTransactionOptions {
  /** How long a write may wait, in ms. */
  timeout: number
}

interface Handlers {
  /** Called with a part of a group that is committed while others still run. */
  onCommit: (committed: CommittedGroup) => void
  /** Called when a write that waited for a lock outside its group was answered. */
  onWaiterEnd: (entry: QueuedCommand) => void
}

/** A group that met a conflict is tried this often before it is halved. */
const MAX_ATTEMPTS = 5

/** Runs groups of writes. When a group fails, its writes are separated until the one at fault is alone. */
export class GroupRunner {
  readonly #database: Database
  readonly #options: GroupRunnerOptions
  readonly #onCommit: Handlers['onCommit']
  readonly #lockWaiters: LockWaiters

  constructor (database: Database, options: GroupRunnerOptions, { onCommit, onWaiterEnd }: Handlers) {
    this.#database = database
    this.#options = options
    this.#onCommit = onCommit
    this.#lockWaiters = createLockWaiters({
      run: async (entry) => { onCommit(await runInTransaction(database, [entry], options)) },
      isConflict: (error) => classifyError(error) === 'conflict',
      onError: (entry, error) => { entry.reject(explainFailure(error)) },
      onEnd: onWaiterEnd
    })
  }

  /** Returns whether a write waits for a lock outside its group, which has ended. */
  isWaiting (entry: QueuedCommand): boolean {
    return this.#lockWaiters.has(entry)
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
   * Runs writes of one sort. One bad command fails its whole transaction: halving isolates it in a few transactions.
   * Halves run after the parts that wait already, so that what has nothing to do with the failure is soon committed.
   */
  async #commit (group: QueuedCommand[]): Promise<CommittedGroup | undefined> {
    const parts = [group]
    for (const part of parts) {
      const late = part.filter(this.#isLate)
      if (late.length > 0) rejectAll(late, new DatabaseUnavailable())
      const timely = part.filter((entry) => !late.includes(entry))
      if (timely.length === 0) continue
      const outcome = await this.#attempt(timely)
      if (outcome === 'failed together') parts.push(...halvesOf(timely))
      else if (part === group) return outcome
      else if (outcome !== undefined) this.#onCommit(outcome)
    }
    return undefined
  }

  /** Runs writes in a transaction. @returns `undefined` if they are answered, or wait for a lock */
  async #attempt (group: QueuedCommand[]): Promise<CommittedGroup | 'failed together' | undefined> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await runInTransaction(this.#database, group, this.#options)
      } catch (error) {
        const kind = classifyError(error)
        // The group has waited for a lock. Another attempt would wait again, and all of its writes with it.
        const isLocked = isLockTimeout(error)
        if (kind === 'conflict' && !isLocked && attempt < MAX_ATTEMPTS && !this.#isLate(group[0]!)) {
          await sleep(Math.random() * 10 * attempt)
          continue
        }
        if (kind === 'unavailable') rejectAll(group, new DatabaseUnavailable({ cause: error }))
        else if (group.length > 1) return 'failed together'
        // It waits for the lock outside the groups, and the others run without it.
        else if (isLocked) this.#lockWaiters.add(group[0]!, error)
        else group[0]!.reject(explainFailure(error))
        return undefined
      }
    }
  }

  readonly #isLate = ({ since }: QueuedCommand): boolean => performance.now() - since > this.#options.timeout
}

export function rejectAll (entries: QueuedCommand[], error: unknown): void {
  for (const entry of entries) entry.reject(error)
}

/** Halves a group by accounts: what fails together is often of one account. */
function halvesOf (group: QueuedCommand[]): QueuedCommand[][] {
  const ordered = group.toSorted((a, b) => (a.context.account ?? 0) - (b.context.account ?? 0))
  const middle = Math.ceil(ordered.length / 2)
  return [ordered.slice(0, middle), ordered.slice(middle)]
}

/** Returns the error that answers a command which failed alone in its transaction. */
function explainFailure (error: unknown): unknown {
  if (error instanceof IdempotencyKeyLocked) return new IdempotencyKeyInUse()
  return failureOf(error)
}
