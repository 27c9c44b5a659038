import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { DatabaseUnavailable, IdempotencyKeyInUse } from '../../errors.ts'
import type { Instrumentation } from '../../monitoring/instrumentation.ts'
import type { Database } from '../database.ts'
import { idempotencyScope, type Command, type QueuedCommand, type WriteContext, type WriteResult } from './command.ts'
import type { Changes } from '../unit-of-work/success.ts'
import { GroupRunner, rejectAll } from './group-runner.ts'
import { isCrowd, nextStep, type Step } from './group-start.ts'
import type { CommittedGroup, GroupTransactionOptions } from './group-transaction.ts'
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
  /** Charges accounts for the time since `began`, in which a command of each ran alone in this process (SQLite). */
  charge?: (accounts: readonly number[], began: number) => void
  /** Called after COMMIT, when something changed. */
  onChange?: (changes: Changes) => void
  instrumentation?: Instrumentation | undefined
}

/** Time for writes without a waiting client, such as a key's last use, once the service stops. */
const CLOSE_TIMEOUT_MS = 1_000

/** Maximum time that a write waits for a key in use, or for a row that another process has locked, in ms. */
const MAX_WAIT_MS = 2_000

/** Interval between two searches for writes that have waited too long. */
const SWEEP_INTERVAL_MS = 250

/**
 * Group commit: writes that arrive within a few ticks of the event loop (SQLite), or while another transaction commits,
 * share one transaction, so that many requests pay for one fsync. A write is answered only after its COMMIT returned.
 */
export class Committer {
  readonly #database: Database
  readonly #options: CommitterOptions
  readonly #sweep: NodeJS.Timeout
  /** The writes in flight by their Idempotency-Keys: a second request with one of them waits for the first. */
  readonly #keysInFlight = new Map<string, QueuedCommand>()
  readonly #queue: WriteQueue
  readonly #runner: GroupRunner

  /** What the groups so far say about the next one. */
  readonly #groups = { inFlight: 0, sharedInFlight: 0, unanswered: 0, lastSize: 0, answeredAt: 0 }
  #isGathering = false
  #delayTimer: NodeJS.Timeout | undefined
  /** Resolves `close` when the last write is done. */
  #onDrained: (() => void) | undefined

  constructor (database: Database, options: CommitterOptions) {
    this.#database = database
    this.#options = options
    this.#queue = new WriteQueue(options.queueLimit)
    this.#runner = new GroupRunner(database, this.#options, (committed) => { this.#announce(committed) })
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
    let entry!: QueuedCommand
    try {
      return await new Promise<WriteResult<Record>>((resolve, reject) => {
        entry = { command, input, context, since: performance.now(), resolve, reject } as QueuedCommand
        this.#queue.add(entry)
        this.#startGathering()
      })
    } finally {
      this.#releaseKey(entry)
    }
  }

  /** Lets a repetition of an answered write start. */
  #releaseKey (entry: QueuedCommand): void {
    const key = idempotencyScope(entry)
    if (this.#keysInFlight.get(key) !== entry) return
    this.#keysInFlight.delete(key)
    if (this.#queue.size > 0) this.#startGathering()
  }

  /** Waits for the writes in the queue, but not longer than `CLOSE_TIMEOUT_MS`. */
  readonly close = async (): Promise<void> => {
    if (this.#queue.size > 0 || this.#groups.inFlight > 0) {
      const drained = new Promise<void>((resolve) => { this.#onDrained = resolve })
      await Promise.race([drained, sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })])
    }
    // The last answers may wait for it as well.
    await nextTurn()
    clearInterval(this.#sweep)
    clearTimeout(this.#delayTimer)
  }

  #startGathering (): void {
    if (this.#isGathering) return
    this.#isGathering = true
    this.#gather(1)
  }

  /** A busy process has other requests to answer meanwhile, and the writes among them share the transaction. */
  #gather (ticks: number): void {
    setImmediate(() => {
      if (this.#nextStep(ticks).do === 'gather') return this.#gather(ticks + 1)
      this.#isGathering = false
      this.#startGroups()
    })
  }

  #nextStep (ticks: number): Step {
    const { size: queued, oldestSince = 0 } = this.#queue
    // A copy by `...` costs a lone write a tenth of its processor time.
    const now = { now: performance.now(), queued, oldestSince, writers: this.#database.writers, ticks }
    return nextStep(this.#database.dialect.name, Object.assign(this.#groups, now))
  }

  #startGroups (): void {
    let step = this.#nextStep(Infinity)
    for (; step.do === 'start'; step = this.#nextStep(Infinity)) {
      const group = this.#takeGroup(step.size)
      if (group.length === 0) return this.#startLater(this.#queue.aloneDelay)
      this.#startGroup(group)
    }
    if (step.do === 'wait') this.#startLater(step.ms)
  }

  /** @param ms `Infinity` if only the end of a group can change anything: it looks again */
  #startLater (ms: number): void {
    if (ms === Infinity) return
    this.#delayTimer ??= setTimeout(() => {
      this.#delayTimer = undefined
      this.#startGathering()
    }, ms)
  }

  #startGroup (group: QueuedCommand[]): void {
    const { instrumentation } = this.#options
    const started = performance.now()
    const { command } = group[0]!
    const isShared = 'decide' in command || command.runsAlone === undefined
    this.#groups.inFlight++
    if (isShared) {
      this.#groups.sharedInFlight++
      this.#groups.unanswered += group.length
      this.#groups.lastSize = group.length
    }
    instrumentation?.batchStarted('commit', started - group[0]!.since)
    const run = this.#runner.run(group).catch((error: unknown) => {
      rejectAll(group, error)
      return undefined
    })
    run.then((committed) => {
      this.#groups.inFlight--
      if (isShared) {
        this.#groups.sharedInFlight--
      } else {
        this.#queue.endAlone(performance.now() - started)
        const accounts = group.flatMap(({ context: { account } }) => account ?? [])
        // The time on a server is not that of this process.
        if (!this.#database.dialect.isServer) this.#options.charge?.(accounts, started)
      }
      instrumentation?.batchFinished('commit', group.length, performance.now() - started)
      if (isCrowd(this.#database.dialect.name, this.#queue.size + this.#groups.unanswered)) this.#startGroups()
      if (committed !== undefined) this.#announce(committed)
    }).catch((error: unknown) => { rejectAll(group, error) }).finally(() => {
      if (isShared) this.#groups.unanswered -= group.length
      this.#groups.answeredAt = performance.now()
      if (this.#queue.size > 0) this.#startGathering()
      else if (this.#groups.inFlight === 0) this.#onDrained?.()
    })
  }

  #takeGroup (maxSize: number): QueuedCommand[] {
    return this.#queue.takeGroup(maxSize, (entry) => {
      const key = idempotencyScope(entry)
      if (key === '') return true
      if (this.#keysInFlight.has(key)) return false
      this.#keysInFlight.set(key, entry)
      return true
    })
  }

  #announce ({ answers, changes }: CommittedGroup): void {
    this.#giveAnswers(answers)
    if (Object.keys(changes).length > 0) this.#options.onChange?.(changes)
  }

  /** While another group is in flight, half of the answers wait for the next turn: its reply is read before. */
  #giveAnswers (answers: ReadonlyArray<() => void>): void {
    const now = this.#groups.sharedInFlight > 0 ? Math.ceil(answers.length / 2) : answers.length
    for (const answer of answers.slice(0, now)) answer()
    if (now < answers.length) setImmediate(() => { for (const answer of answers.slice(now)) answer() })
  }

  #rejectLateWrites (): void {
    const now = performance.now()
    const isRepeated = (entry: QueuedCommand): boolean => this.#keysInFlight.has(idempotencyScope(entry))
    rejectAll(this.#queue.takeLate(now - this.#options.timeout), new DatabaseUnavailable())
    rejectAll(this.#queue.takeLate(now - MAX_WAIT_MS, isRepeated), new IdempotencyKeyInUse())
    this.#runner.rejectWaiters(now - MAX_WAIT_MS)
  }
}
