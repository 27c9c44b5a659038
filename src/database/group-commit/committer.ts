import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseUnavailable } from '../../errors.ts'
import type { Instrumentation } from '../../monitoring/instrumentation.ts'
import type { Database } from '../database.ts'
import type { Command, QueuedCommand, WriteContext, WriteResult } from './command.ts'
import type { Changes } from '../unit-of-work/success.ts'
import { GroupRunner, rejectAll } from './group-runner.ts'
import type { CommittedGroup, GroupTransactionOptions } from './group-transaction.ts'
import { idempotencyRecords } from '../../generated/tables.ts'
import type { Write } from '../unit-of-work/write.ts'
import { WriteQueue } from './write-queue.ts'

export type Commit = <Input, Record>(
  command: Command<Input, Record> | Write<Input, Record>, input: Input, context: WriteContext
) => Promise<WriteResult<Record>>

export interface CommitterOptions extends GroupTransactionOptions {
  /** How many writes may wait before the next is refused; one account may have a quarter of them. */
  queueLimit: number
  /** How long a write may wait, in ms. */
  timeout: number
  /** Called after COMMIT, when something changed. */
  onChange?: (changes: Changes) => void
  instrumentation?: Instrumentation | undefined
}

/** Maximum number of commands in one transaction: bounds its time and its memory. */
const MAX_GROUP = 256

/**
 * A crowd is split into two groups that take turns: while the server works on one, this process answers the clients of
 * the other. Groups are not made smaller than this, because each also costs a round trip and a COMMIT. SQLite works in
 * this thread.
 */
const MIN_HALF_OF_CROWD = { sqlite: Infinity, postgresql: 16 }

/**
 * Maximum time a write waits for the group in flight. After that it starts a group on another connection, if the
 * database has one.
 */
const MAX_QUEUE_DELAY_MS = 20

/** Ticks of the event loop in which other writes may join, if the process is busy. */
const MAX_BATCHING_TICKS = 12

/**
 * Maximum time of these ticks, in ms: each tick of a process that answers many reads takes about 2 ms. On PostgreSQL,
 * writes also gather during the round trips of the group in flight.
 */
const MAX_BATCHING_MS = { sqlite: 4, postgresql: 1 }

/** Time for writes without a waiting client, such as a key's last use, once the service stops. */
const CLOSE_TIMEOUT_MS = 1_000

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
  readonly #runner: GroupRunner

  #groupsInFlight = 0
  /** Number of writes in the last group. */
  #lastSize = 0
  /** When the last group was answered, as a time of `performance.now()`. */
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
    // The one table that group commits write by themselves; the records of a deleted account are erased as well.
    this.#options = { ...options, tables: [...options.tables, idempotencyRecords] }
    this.#queue = new WriteQueue(options.queueLimit)
    this.#runner = new GroupRunner(database, this.#options, {
      onCommit: (committed) => { this.#announce(committed) },
      onWaiterEnd: (entry) => {
        this.#keysInFlight.delete(idempotencyScope(entry))
        if (this.#queue.size > 0) this.#startBatching()
      }
    })
    this.#sweep = setInterval(() => { this.#rejectLateWrites() }, SWEEP_INTERVAL_MS).unref()
    options.instrumentation?.queue('commit', () => this.#queue.size)
  }

  /**
   * Runs a command in the next group.
   *
   * @throws Overloaded when too many writes wait, DatabaseUnavailable when the outcome is unknown
   */
  readonly commit: Commit = async <Input, Record>(
    command: Command<Input, Record> | Write<Input, Record>, input: Input, context: WriteContext
  ) => {
    return await new Promise<WriteResult<Record>>((resolve, reject) => {
      this.#queue.add({ command, input, context, since: performance.now(), resolve, reject } as QueuedCommand)
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
    const waiting = performance.now() - Math.max(this.#queue.oldestSince ?? 0, this.#answeredAt)
    return MAX_BATCHING_MS[this.#database.dialect.name] - waiting
  }

  /** How much longer the oldest write may wait for the group in flight, in ms. */
  #remainingDelay (): number {
    return (this.#queue.oldestSince ?? 0) + MAX_QUEUE_DELAY_MS - performance.now()
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
    const started = performance.now()
    const { command } = group[0]!
    const isShared = 'decide' in command || command.runsAlone === undefined
    this.#groupsInFlight++
    if (isShared) this.#sharedInFlight++
    this.#isBusy = group.length > 1
    this.#lastSize = group.length
    instrumentation?.batchStarted('commit', started - group[0]!.since)
    const run = this.#runner.run(group).catch((error: unknown) => {
      rejectAll(group, error)
      return undefined
    })
    run.then((committed) => {
      for (const entry of group) if (!this.#runner.isWaiting(entry)) this.#keysInFlight.delete(idempotencyScope(entry))
      this.#groupsInFlight--
      if (isShared) this.#sharedInFlight--
      instrumentation?.batchFinished('commit', group.length, performance.now() - started)
      if (this.#queue.size >= this.#minHalf) this.#startGroups()
      if (committed !== undefined) this.#announce(committed)
    }).catch((error: unknown) => { rejectAll(group, error) }).finally(() => {
      this.#answeredAt = performance.now()
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
    return MIN_HALF_OF_CROWD[this.#database.dialect.name]
  }

  /** Returns the number of writes in half of the crowd, unless it is small or its writes have waited long. */
  #halfOfCrowd (): number {
    const half = Math.ceil((this.#queue.size + this.#lastSize) / 2)
    return half < this.#minHalf || this.#remainingDelay() <= 0 ? Infinity : half
  }

  #announce (committed: CommittedGroup): void {
    for (const answer of committed.answers) answer()
    if (Object.keys(committed.changes).length > 0) this.#options.onChange?.(committed.changes)
  }

  #rejectLateWrites (): void {
    rejectAll(this.#queue.takeLate(performance.now() - this.#options.timeout), new DatabaseUnavailable())
  }
}

export function createCommitter (database: Database, options: CommitterOptions): Pick<Committer, 'commit' | 'close'> {
  return new Committer(database, options)
}

/** Returns what two requests must share to be the same write; empty without an Idempotency-Key. */
function idempotencyScope ({ context: { account, idempotency } }: QueuedCommand): string {
  return idempotency === undefined ? '' : `${account} ${idempotency.key}`
}
