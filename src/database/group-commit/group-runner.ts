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

/** A group that is halved because of a lock waits no longer for it than this in each half, in ms. */
const HALF_LOCK_TIMEOUT_MS = 50

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
      run: async (entry) => { onCommit(await this.#attempt([entry])) },
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

  /** Runs writes of one sort in a transaction. */
  async #attempt (group: QueuedCommand[], lockTimeoutMs?: number): Promise<CommittedGroup> {
    return await runInTransaction(this.#database, group, this.#options, lockTimeoutMs)
  }

  async #commit (group: QueuedCommand[], lockTimeoutMs?: number): Promise<CommittedGroup | undefined> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(group, lockTimeoutMs)
      } catch (error) {
        const kind = classifyError(error)
        const isLocked = isLockTimeout(error)
        // The group has waited for a lock. Another attempt would wait again, and all of its writes with it.
        if (kind === 'conflict' && !isLocked && attempt < MAX_ATTEMPTS && !this.#isLate(group[0]!)) {
          await sleep(Math.random() * 10 * attempt)
          continue
        }
        if (kind === 'unavailable') rejectAll(group, new DatabaseUnavailable({ cause: error }))
        else if (isLocked) await this.#isolateLocked(group, error)
        else if (group.length > 1) await this.#runHalves(group, lockTimeoutMs)
        else if (error instanceof IdempotencyKeyLocked) this.#lockWaiters.add(group[0]!, error)
        else group[0]!.reject(explainFailure(error))
        return undefined
      }
    }
  }

  /** The write that needs the locked row waits for it outside the groups, and the others run without it. */
  async #isolateLocked (group: QueuedCommand[], error: unknown): Promise<undefined> {
    if (group.length > 1) await this.#runHalves(group, HALF_LOCK_TIMEOUT_MS)
    else this.#lockWaiters.add(group[0]!, error)
  }

  /** One bad command fails its whole transaction. Halving isolates it in a few transactions. */
  async #runHalves (group: QueuedCommand[], lockTimeoutMs?: number): Promise<void> {
    const middle = Math.ceil(group.length / 2)
    for (const half of [group.slice(0, middle), group.slice(middle)]) {
      const [late, timely] = [half.filter(this.#isLate), half.filter((entry) => !this.#isLate(entry))]
      rejectAll(late, new DatabaseUnavailable())
      if (timely.length === 0) continue
      const committed = await this.#commit(timely, lockTimeoutMs)
      if (committed !== undefined) this.#onCommit(committed)
    }
  }

  readonly #isLate = ({ since }: QueuedCommand): boolean => performance.now() - since > this.#options.timeout
}

export function rejectAll (entries: QueuedCommand[], error: unknown): void {
  for (const entry of entries) entry.reject(error)
}

/** Returns the error that answers a command which failed alone in its transaction. */
function explainFailure (error: unknown): unknown {
  if (error instanceof IdempotencyKeyLocked) return new IdempotencyKeyInUse()
  return failureOf(error)
}
