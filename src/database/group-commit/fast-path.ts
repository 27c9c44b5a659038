import { DatabaseUnavailable } from '../../errors.ts'
import { REAL_TIME, timeText, type AccountClocks } from '../account-clocks.ts'
import type { Database } from '../database.ts'
import type { Dialect } from '../dialect.ts'
import { classifyError, isLockTimeout } from '../error-classification.ts'
import type { Steps } from '../steps.ts'
import type {
  BeforeCommit, Changes, CompletedCommand, FastPath, FastPathEvents, QueuedCommand
} from './command.ts'

/**
 * If at least this share of an account's writes in a group is not the usual case, the account takes no fast path for
 * `UNUSUAL_MS`: a client that repeats what is refused would cost a transaction more each time.
 */
const MAX_UNUSUAL_SHARE = 1 / 8
const UNUSUAL_MS = 100

/** Maximum number of accounts that are remembered for `UNUSUAL_MS`. */
const MAX_REMEMBERED = 10_000

/** The writes that are committed, and what they have changed. */
interface FastPathsResult {
  completed: CompletedCommand[]
  changes: Changes
  /** The error of a group that has waited too long for a locked row. */
  lockTimeout?: unknown
}

const NOTHING: FastPathsResult = { completed: [], changes: {} }

interface Attempt {
  entry: QueuedCommand
  fastPath: FastPath<unknown, unknown>
  steps: Steps
  shared: Writer
  input: object
}

/** A writer's account, its time, and how far its clock is ahead, in seconds. */
interface Writer { account: number, now: string, ahead: number }

/** Runs writes by the fast paths of their commands. */
export class FastPaths {
  readonly #database: Database
  readonly #events: FastPathEvents | undefined
  readonly #clocks: AccountClocks
  /** The steps by command. */
  readonly #steps = new Map<string, Steps>()
  /** Times by `performance.now()` until which accounts take no fast path. */
  readonly #unusualUntil = new Map<number, number>()

  constructor (database: Database, beforeCommit: readonly BeforeCommit[], clocks: AccountClocks = REAL_TIME) {
    this.#database = database
    this.#events = beforeCommit.length === 1 ? beforeCommit[0]!.inFastPath : undefined
    this.#clocks = clocks
  }

  /**
   * Runs the writes of a group in one transaction, if all of them have a fast path and the group is small enough.
   *
   * @returns those that are committed; `run` must decide about the others, which have written nothing
   * @throws DatabaseUnavailable when the outcome is unknown
   */
  async run (group: QueuedCommand[]): Promise<FastPathsResult> {
    const events = this.#events
    if (events === undefined || group.length > this.#database.maxSteps) return NOTHING
    const attempts: Attempt[] = []
    const writers = new Map<number, Writer>()
    for (const entry of group) {
      const attempt = this.#attemptOf(entry, events, writers)
      if (attempt === undefined) return NOTHING
      attempts.push(attempt)
    }
    let rows: Array<object | undefined> = []
    try {
      rows = await this.#database.commitSteps(attempts)
    } catch (error) {
      if (classifyError(error) === 'unavailable') throw new DatabaseUnavailable({ cause: error })
      // The transaction was rolled back.
      if (isLockTimeout(error)) return { ...NOTHING, lockTimeout: error }
    }
    const completed: CompletedCommand[] = []
    const accounts = new Map<number, { usual: number, unusual: number }>()
    let tracked = false
    for (const [i, { entry, fastPath, shared: { account, now } }] of attempts.entries()) {
      let counts = accounts.get(account)
      if (counts === undefined) accounts.set(account, counts = { usual: 0, unusual: 0 })
      const made = rows[i] as { id: number | string } | undefined
      if (made === undefined) {
        counts.unusual++
        continue
      }
      counts.usual++
      completed.push({ entry, success: fastPath.resultOf(entry.input, made.id, now) })
      tracked ||= fastPath.event.isTracked === true
    }
    for (const [account, { usual, unusual }] of accounts) {
      if (unusual > 0 && unusual >= (usual + unusual) * MAX_UNUSUAL_SHARE) this.#rememberUnusual(account)
    }
    if (completed.length === 0) return NOTHING
    const changed = [...accounts.keys()].filter((account) => accounts.get(account)!.usual > 0)
    return { completed, changes: events.changesOf(changed, tracked) }
  }

  /** Returns `undefined` if a write has no fast path. */
  #attemptOf (entry: QueuedCommand, events: FastPathEvents, writers: Map<number, Writer>): Attempt | undefined {
    const { command: { name, fastPath }, input, context: { account, idempotency, rejection } } = entry
    if (fastPath === undefined || account === null || idempotency !== undefined || rejection !== undefined) {
      return undefined
    }
    if (!events.isPossible(account) || this.#isUnusual(account)) return undefined
    let writer = writers.get(account)
    if (writer === undefined) {
      const ahead = this.#clocks.offsetOf(account) / 1000
      writers.set(account, writer = { account, now: timeText(this.#clocks.now(account)), ahead })
    }
    const own = fastPath.inputOf(input, writer.now)
    if (own === undefined) return undefined
    let steps = this.#steps.get(name)
    if (steps === undefined) {
      steps = buildSteps(this.#database.dialect, fastPath, events)
      this.#steps.set(name, steps)
    }
    return { entry, fastPath, steps, shared: writer, input: own }
  }

  #isUnusual (account: number): boolean {
    if (this.#unusualUntil.size === 0) return false
    const until = this.#unusualUntil.get(account)
    if (until === undefined) return false
    if (performance.now() < until) return true
    this.#unusualUntil.delete(account)
    return false
  }

  #rememberUnusual (account: number): void {
    if (this.#unusualUntil.size >= MAX_REMEMBERED) this.#unusualUntil.clear()
    this.#unusualUntil.set(account, performance.now() + UNUSUAL_MS)
  }
}

function buildSteps (
  dialect: Dialect, { inputs, steps, event }: FastPath<unknown, unknown>, events: FastPathEvents
): Steps {
  const writer: Steps['steps'][0] = {
    name: 'writer',
    find: 'accounts',
    id: ['id', '@account'],
    where: `accounts.deleted_at IS NULL AND accounts.clock_offset_seconds = @ahead AND ${events.condition}`,
    columns: { id: 'bigint' },
    lock: 'key share'
  }
  return {
    shared: { account: 'bigint', now: 'text', ahead: 'bigint' },
    inputs,
    steps: [writer, ...steps(dialect), ...events.steps(dialect, event)],
    result: 'made'
  }
}
