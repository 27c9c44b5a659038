import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseUnavailable, IdempotencyKeyInUse } from '../../errors.ts'
import type { Instrumentation } from '../../monitoring/instrumentation.ts'
import { classifyError, isLockTimeout, type ErrorKind } from '../error-classification.ts'
import type { Database } from '../database.ts'
import {
  type Changes, type Command, type QueuedCommand, type WriteContext, type WriteResult
} from './command.ts'
import { FastPaths } from './fast-path.ts'
import { createLockWaiters } from './lock-waiters.ts'
import { answerOf, runInTransaction, type CommittedGroup, type GroupTransactionOptions } from './group-transaction.ts'
import { IdempotencyKeyLocked, idempotencyTable } from './idempotency-records.ts'
import { Outdated } from './transaction.ts'
import { WriteQueue } from './write-queue.ts'

export type Commit = <Input, Record>(
  command: Command<Input, Record>, input: Input, context: WriteContext
) => Promise<WriteResult<Record>>

export interface CommitterOptions extends GroupTransactionOptions {
  /** How many writes may wait before the next is refused; one account may have a quarter of them. */
  queueLimit: number
  /** How long a write may wait, in ms. */
  timeout: number
  /** Called when a write arrives. */
  onWrite?: () => void
  /** Returns whether reads have arrived since a time of `performance.now()`. */
  hasReadsSince?: (time: number) => boolean
  /** Returns whether another process writes to the database. */
  hasPeer?: () => boolean
  /** Called after COMMIT, when something changed. */
  onChange?: (changes: Changes) => void
  instrumentation?: Instrumentation | undefined
}

/** Maximum number of commands in one transaction: bounds its time and its memory. */
const MAX_GROUP = 256

/**
 * A crowd is split into two groups that take turns: while the server works on one, this process answers the clients of
 * the other. Groups are not made smaller than this, because each also costs a round trip and a COMMIT. SQLite works in
 * this thread. Beside a process that writes, crowds stay whole: the server works on that one's groups.
 */
const MIN_HALF_OF_CROWD = { sqlite: Infinity, postgresql: 16 }

/** A group that met a conflict is tried this often before it is halved. */
const MAX_ATTEMPTS = 5

/**
 * Maximum time a write waits for others to join its group, or for the group in flight. After that it starts a group
 * on another connection, if the database has one.
 */
const MAX_QUEUE_DELAY_MS = 20

/** Ticks of the event loop in which other writes may join, if the process is busy. */
const MAX_BATCHING_TICKS = 12

/**
 * Maximum time of these ticks beside reads, in ms: each tick of a process that answers many reads takes about 2 ms. On
 * PostgreSQL, writes also gather during the round trips of the group in flight.
 */
const MAX_BATCHING_BESIDE_READS_MS = { sqlite: 4, postgresql: 1 }

/** Time for writes without a waiting client, such as a key's last use, once the service stops. */
const CLOSE_TIMEOUT_MS = 1_000

/** A group that is halved because of a lock waits no longer for it than this in each half, in ms. */
const HALF_LOCK_TIMEOUT_MS = 50

/** Interval between two searches of the queue for writes that have waited too long. */
const SWEEP_INTERVAL_MS = 250

/**
 * Group commit: writes that arrive within a few ticks of the event loop, or while another transaction commits, share
 * one transaction, so that many requests pay for one fsync. A write is answered only after its COMMIT returned.
 */
class Committer {
  readonly #database: Database
  readonly #options: CommitterOptions
  readonly #sweep: NodeJS.Timeout
  /** Idempotency keys of the groups in flight: a second request with one of them waits for the first. */
  readonly #keysInFlight = new Set<string>()
  readonly #queue: WriteQueue
  readonly #fastPaths: FastPaths
  readonly #lockWaiters = createLockWaiters({
    run: async (entry) => { this.#announce(await runInTransaction(this.#database, [entry], this.#options)) },
    isConflict: (error) => kindOf(error) === 'conflict',
    onError: (entry, error) => { entry.reject(explainFailure(error)) },
    onEnd: (entry) => {
      this.#keysInFlight.delete(idempotencyScope(entry))
      if (this.#queue.size > 0) this.#startBatching()
    }
  })

  #groupsInFlight = 0
  /** Number of writes in the last group. */
  #lastSize = 0
  /** When the last group was answered, in ms. */
  #answeredAt = 0
  /** Without those of commands that run alone: other writes do not wait for these, which can take long. */
  #sharedInFlight = 0
  /** Whether the last group had more than one write: then others are likely to arrive soon. */
  #isBusy = false
  /** `idle` until a write arrives, then `batching` until its group starts. */
  #state: 'idle' | 'batching' = 'idle'
  #delayTimer: NodeJS.Timeout | undefined
  /** Resolves `close` when the last write is done. */
  #onDrained: (() => void) | undefined

  constructor (database: Database, options: CommitterOptions) {
    this.#database = database
    this.#options = { ...options, tables: [...options.tables, idempotencyTable] }
    this.#queue = new WriteQueue(options.queueLimit)
    this.#fastPaths = new FastPaths(database, options.beforeCommit, options.clocks)
    this.#sweep = setInterval(() => { this.#rejectLateWrites() }, SWEEP_INTERVAL_MS).unref()
    options.instrumentation?.queue('commit', () => this.#queue.size)
  }

  /**
   * Runs a command in the next group.
   *
   * @throws Overloaded when too many writes wait, DatabaseUnavailable when the outcome is unknown
   */
  readonly commit: Commit = async <Input, Record>(
    command: Command<Input, Record>, input: Input, context: WriteContext
  ) => {
    return await new Promise<WriteResult<Record>>((resolve, reject) => {
      this.#options.onWrite?.()
      this.#queue.add({ command, input, context, since: Date.now(), resolve, reject } as QueuedCommand)
      this.#startBatching()
    })
  }

  /** Waits for the writes in the queue, but not longer than `CLOSE_TIMEOUT_MS`. */
  readonly close = async (): Promise<void> => {
    if (this.#queue.size > 0 || this.#groupsInFlight > 0) {
      const drained = new Promise<void>((resolve) => { this.#onDrained = resolve })
      await Promise.race([drained, sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })])
    }
    clearInterval(this.#sweep)
    clearTimeout(this.#delayTimer)
  }

  #startBatching (): void {
    if (this.#state === 'batching') return
    this.#state = 'batching'
    this.#collectBatch(1)
  }

  /** A busy process has other requests to answer meanwhile, and the writes among them share the transaction. */
  #collectBatch (tick: number): void {
    setImmediate(() => {
      const size = this.#queue.size
      const isBusy = this.#isBusy || size > 1
      const mayGrow = isBusy && size < MAX_GROUP && this.#sharedInFlight === 0 && tick < MAX_BATCHING_TICKS
      if (mayGrow && this.#remainingBatching() > 0) {
        this.#collectBatch(tick + 1)
      } else {
        this.#state = 'idle'
        this.#startGroups()
      }
    })
  }

  /**
   * How much longer writes may gather, in ms. The clients of the group that was answered last are likely to write
   * again: without their writes, groups would become smaller and smaller.
   */
  #remainingBatching (): number {
    const waiting = Date.now() - Math.max(this.#queue.oldestSince ?? 0, this.#answeredAt)
    const isBesideReads = this.#options.hasReadsSince?.(performance.now() - waiting) === true
    return (isBesideReads ? MAX_BATCHING_BESIDE_READS_MS[this.#database.dialect.name] : MAX_QUEUE_DELAY_MS) - waiting
  }

  /** How much longer the oldest write may wait for the group in flight, in ms. */
  #remainingDelay (): number {
    return (this.#queue.oldestSince ?? 0) + MAX_QUEUE_DELAY_MS - Date.now()
  }

  #startGroups (): void {
    while (this.#queue.size > 0 && this.#groupsInFlight < this.#database.writers) {
      // Writes that wait for the group in flight share the next one, unless that group takes long.
      if (this.#sharedInFlight > 0 && this.#remainingDelay() > 0) {
        this.#delayTimer ??= setTimeout(() => {
          this.#delayTimer = undefined
          this.#startBatching()
        }, this.#remainingDelay())
        return
      }
      const group = this.#takeGroup()
      if (group.length === 0) return
      this.#startGroup(group)
    }
  }

  #startGroup (group: QueuedCommand[]): void {
    const { instrumentation } = this.#options
    const started = Date.now()
    const isShared = group[0]!.command.runsAlone === undefined
    this.#groupsInFlight++
    if (isShared) this.#sharedInFlight++
    this.#isBusy = group.length > 1
    this.#lastSize = group.length
    instrumentation?.batchStarted('commit', started - group[0]!.since)
    const run = this.#runGroup(group).catch((error: unknown) => {
      rejectAll(group, error)
      return undefined
    })
    run.then((committed) => {
      for (const entry of group) if (!this.#lockWaiters.has(entry)) this.#keysInFlight.delete(idempotencyScope(entry))
      this.#groupsInFlight--
      if (isShared) this.#sharedInFlight--
      instrumentation?.batchFinished('commit', group.length, Date.now() - started)
      if (this.#queue.size >= this.#minHalf) this.#startGroups()
      if (committed !== undefined) this.#announce(committed)
    }).catch((error: unknown) => { rejectAll(group, error) }).finally(() => {
      this.#answeredAt = Date.now()
      if (this.#queue.size > 0) this.#startBatching()
      else if (this.#groupsInFlight === 0) this.#onDrained?.()
    })
  }

  #takeGroup (): QueuedCommand[] {
    return this.#queue.takeGroup(Math.min(MAX_GROUP, this.#halfOfCrowd()), (entry) => {
      const key = idempotencyScope(entry)
      if (key === '') return true
      if (this.#keysInFlight.has(key)) return false
      this.#keysInFlight.add(key)
      return true
    })
  }

  get #minHalf (): number {
    return this.#options.hasPeer?.() === true ? Infinity : MIN_HALF_OF_CROWD[this.#database.dialect.name]
  }

  /** Returns the number of writes in half of the crowd, unless it is small or its writes have waited long. */
  #halfOfCrowd (): number {
    const half = Math.ceil((this.#queue.size + this.#lastSize) / 2)
    return half < this.#minHalf || this.#remainingDelay() <= 0 ? Infinity : half
  }

  /** Returns what is committed and not announced. */
  async #runGroup (group: QueuedCommand[]): Promise<CommittedGroup | undefined> {
    const { completed, changes } = await this.#fastPaths.run(group)
    if (completed.length === 0) return await this.#commitGroup(group)
    const answers = completed.map(({ entry, success }) => answerOf(entry, success))
    if (completed.length === group.length) return { answers, changes }
    this.#announce({ answers, changes })
    const committed = new Set(completed.map(({ entry }) => entry))
    return await this.#commitGroup(group.filter((entry) => !committed.has(entry)))
  }

  async #runCommands (group: QueuedCommand[], lockTimeoutMs?: number): Promise<void> {
    const committed = await this.#commitGroup(group, lockTimeoutMs)
    if (committed !== undefined) this.#announce(committed)
  }

  #announce (committed: CommittedGroup): void {
    for (const answer of committed.answers) answer()
    if (Object.keys(committed.changes).length > 0) this.#options.onChange?.(committed.changes)
  }

  /** Returns `undefined` when the group failed; its entries are answered then. */
  async #commitGroup (group: QueuedCommand[], lockTimeoutMs?: number): Promise<CommittedGroup | undefined> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await runInTransaction(this.#database, group, { ...this.#options, lockTimeoutMs })
      } catch (error) {
        const kind = kindOf(error)
        const isLocked = isLockTimeout(error)
        // The group has waited for a lock. Another attempt would wait again, and all of its writes with it.
        if (kind === 'conflict' && !isLocked && attempt < MAX_ATTEMPTS && !this.#isLate(group[0]!)) {
          await sleep(Math.random() * 10 * attempt)
          continue
        }
        if (kind === 'unavailable') rejectAll(group, new DatabaseUnavailable({ cause: error }))
        else if (group.length > 1) await this.#runHalves(group, isLocked ? HALF_LOCK_TIMEOUT_MS : lockTimeoutMs)
        else if (isLocked || error instanceof IdempotencyKeyLocked) this.#lockWaiters.add(group[0]!, error)
        else group[0]!.reject(explainFailure(error))
        return undefined
      }
    }
  }

  /** One bad command fails its whole transaction. Halving isolates it in a few transactions. */
  async #runHalves (group: QueuedCommand[], lockTimeoutMs?: number): Promise<void> {
    const middle = Math.ceil(group.length / 2)
    for (const half of [group.slice(0, middle), group.slice(middle)]) {
      const [late, timely] = [half.filter(this.#isLate), half.filter((entry) => !this.#isLate(entry))]
      rejectAll(late, new DatabaseUnavailable())
      if (timely.length > 0) await this.#runCommands(timely, lockTimeoutMs)
    }
  }

  readonly #isLate = ({ since }: QueuedCommand): boolean => Date.now() - since > this.#options.timeout

  #rejectLateWrites (): void {
    rejectAll(this.#queue.takeLate(Date.now() - this.#options.timeout), new DatabaseUnavailable())
  }
}

export function createCommitter (database: Database, options: CommitterOptions): Pick<Committer, 'commit' | 'close'> {
  return new Committer(database, options)
}

function kindOf (error: unknown): ErrorKind {
  return error instanceof Outdated ? 'conflict' : classifyError(error)
}

/** Returns the error that answers a command which failed alone in its transaction. */
function explainFailure (error: unknown): unknown {
  if (error instanceof IdempotencyKeyLocked) return new IdempotencyKeyInUse()
  return kindOf(error) === 'statement error' ? error : new DatabaseUnavailable({ cause: error })
}

function rejectAll (entries: QueuedCommand[], error: unknown): void {
  for (const entry of entries) entry.reject(error)
}

/** Returns what two requests must share to be the same write; empty without an Idempotency-Key. */
function idempotencyScope ({ context: { account, idempotency } }: QueuedCommand): string {
  return idempotency === undefined ? '' : `${account} ${idempotency.key}`
}
