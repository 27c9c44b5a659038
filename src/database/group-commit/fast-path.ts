import { DatabaseUnavailable } from '../../errors.ts'
import { REAL_TIME, timeText, type AccountClocks } from '../account-clocks.ts'
import type { Database } from '../database.ts'
import type { Dialect } from '../dialect.ts'
import { classifyError } from '../error-classification.ts'
import type { Step, Steps } from '../steps.ts'
import type {
  BeforeCommit, Changes, CompletedCommand, FastPath, FastPathEvents, QueuedCommand
} from './command.ts'

/**
 * If at least this share of an account's writes in a group is not the usual case, the account takes no fast path for
 * `UNUSUAL_MS`: a client that repeats what is refused would cost a transaction more each time.
 */
const MAX_UNUSUAL_SHARE = 1 / 8
const UNUSUAL_MS = 100

/**
 * After a group that would have taken too many statements, only groups up to this size are tried for `TOO_LARGE_MS`: to
 * prepare all writes of a large group, and then not to run it, costs a twentieth of its time.
 */
const MAX_SMALL_GROUP = 8
const TOO_LARGE_MS = 100

/** Maximum number of accounts that are remembered for `UNUSUAL_MS`. */
const MAX_REMEMBERED = 10_000

/** The writes that are committed, and what they have changed. */
interface FastPathsResult {
  completed: CompletedCommand[]
  changes: Changes
}

const NOTHING: FastPathsResult = { completed: [], changes: {} }

interface Attempt {
  entry: QueuedCommand
  account: number
  fastPath: FastPath<unknown, unknown>
  /** The time of the account. */
  now: string
  steps: Steps
  input: object
}

/** Runs writes by the fast paths of their commands. */
export class FastPaths {
  readonly #database: Database
  readonly #events: FastPathEvents | undefined
  readonly #clocks: AccountClocks
  /** The steps by command. */
  readonly #steps = new Map<string, Steps>()
  /** Times by `Date.now()` until which accounts take no fast path. */
  readonly #unusualUntil = new Map<number, number>()
  /** Time by `Date.now()` until which only small groups are tried. */
  #onlySmallUntil = 0

  constructor (database: Database, beforeCommit: readonly BeforeCommit[], clocks: AccountClocks = REAL_TIME) {
    this.#database = database
    this.#events = beforeCommit.length === 1 ? beforeCommit[0]!.inFastPath : undefined
    this.#clocks = clocks
  }

  /**
   * Runs the writes of a group in one transaction, if all of them have a fast path and few statements are enough.
   *
   * @returns those that are committed; `run` must decide about the others, which have written nothing
   * @throws DatabaseUnavailable when the outcome is unknown
   */
  async run (group: QueuedCommand[]): Promise<FastPathsResult> {
    const events = this.#events
    if (events === undefined) return NOTHING
    if (group.length > MAX_SMALL_GROUP && Date.now() < this.#onlySmallUntil) return NOTHING
    const attempts: Attempt[] = []
    for (const entry of group) {
      const attempt = this.#attemptOf(entry, events)
      if (attempt === undefined) return NOTHING
      attempts.push(attempt)
    }
    const committing = this.#database.commitSteps(attempts)
    if (committing === undefined) {
      this.#onlySmallUntil = Date.now() + TOO_LARGE_MS
      return NOTHING
    }
    const rows = await committing.catch((error: unknown) => {
      if (classifyError(error) === 'unavailable') throw new DatabaseUnavailable({ cause: error })
      // The transaction was rolled back.
      return []
    })
    const completed: CompletedCommand[] = []
    const accounts = new Map<number, { usual: number, unusual: number }>()
    let tracked = false
    for (const [i, { entry, account, fastPath, now }] of attempts.entries()) {
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
  #attemptOf (entry: QueuedCommand, events: FastPathEvents): Attempt | undefined {
    const { command: { name, fastPath }, input, context: { account, idempotency, rejection } } = entry
    if (fastPath === undefined || account === null || idempotency !== undefined || rejection !== undefined) {
      return undefined
    }
    if (!events.isPossible(account) || this.#isUnusual(account)) return undefined
    const now = timeText(this.#clocks.now(account))
    const own = fastPath.inputOf(input, now)
    if (own === undefined) return undefined
    let steps = this.#steps.get(name)
    if (steps === undefined) {
      steps = buildSteps(this.#database.dialect, fastPath, events)
      this.#steps.set(name, steps)
    }
    const common = { account, now, ahead: this.#clocks.offsetOf(account) / 1000 }
    return { entry, account, fastPath, now, steps, input: { ...own, ...common } }
  }

  #isUnusual (account: number): boolean {
    if (this.#unusualUntil.size === 0) return false
    const until = this.#unusualUntil.get(account)
    if (until === undefined) return false
    if (Date.now() < until) return true
    this.#unusualUntil.delete(account)
    return false
  }

  #rememberUnusual (account: number): void {
    if (this.#unusualUntil.size >= MAX_REMEMBERED) this.#unusualUntil.clear()
    this.#unusualUntil.set(account, Date.now() + UNUSUAL_MS)
  }
}

function buildSteps (
  dialect: Dialect, { inputs, updates, steps, event }: FastPath<unknown, unknown>, events: FastPathEvents
): Steps {
  const writer: Step = {
    name: 'writer',
    find: 'accounts',
    id: ['id', '@account'],
    where: `accounts.deleted_at IS NULL AND accounts.clock_offset_seconds = @ahead AND ${events.condition}`,
    columns: { id: 'bigint' },
    lock: 'key share'
  }
  return {
    inputs: { account: 'bigint', now: 'text', ahead: 'bigint', ...inputs },
    updates,
    steps: [writer, ...steps(dialect), ...events.steps(dialect, event)],
    result: 'made'
  }
}
