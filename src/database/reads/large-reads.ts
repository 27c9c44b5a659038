import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { RoundRobinQueue } from '../round-robin-queue.ts'
import { MAX_BATCH, type AnyQuery, type Call } from './query.ts'
import type { RunnerOptions, StatementRunner } from './statement-runner.ts'

/** Maximum size of the rows of one statement in bytes, if it has more than one row. */
const MAX_BATCH_BYTES = 2_500_000

/** A statement that takes longer, in ms, is followed by a pause. */
const LONG_STATEMENT_MS = 2

/**
 * The pause as a multiple of the statement's time: reads of large rows take an eighth of the time of a process. With a
 * quarter, and two processes on two cores, an account kept 0.32 of its writes beside another one's reads, and 0.51 now.
 */
const PAUSE_FACTOR = 7

/** Maximum pause in ms: on a very slow database, large reads must still end before their time-out. */
const MAX_PAUSE_MS = 1_000

/** Returns how many inputs one statement of a query takes. */
function batchSizeOf ({ maxRowBytes = 1 }: AnyQuery): number {
  return Math.max(1, Math.min(MAX_BATCH, Math.floor(MAX_BATCH_BYTES / maxRowBytes)))
}

/**
 * Runs calls whose rows can be large. Accounts take turns, and one statement runs at a time, so that small reads and
 * writes find free connections on a server, and most of the time of the process.
 */
export class LargeReads {
  readonly #runner: StatementRunner
  readonly #charge: RunnerOptions['charge']
  /** Calls that wait, by account. */
  readonly #waiting = new RoundRobinQueue<unknown, Call>()
  #isRunning = false

  constructor (runner: StatementRunner, { charge }: RunnerOptions) {
    this.#runner = runner
    this.#charge = charge
  }

  add (call: Call): void {
    this.#waiting.add((call.input as { account?: unknown }).account, call)
    if (!this.#isRunning) void this.#run()
  }

  async #run (): Promise<void> {
    this.#isRunning = true
    for (;;) {
      // Calls of one turn of the event loop share a statement.
      await nextTurn()
      const calls = this.#takeBatch()
      if (calls === undefined) break
      const ms = await this.#runner.run(calls)
      const accounts = calls.flatMap(({ input }) => (input as { account?: number }).account ?? [])
      this.#charge?.(accounts, performance.now() - ms)
      if (ms > LONG_STATEMENT_MS) await sleep(Math.min(PAUSE_FACTOR * ms, MAX_PAUSE_MS))
    }
    this.#isRunning = false
  }

  #takeBatch (): [Call, ...Call[]] | undefined {
    const first = this.#take(() => true)
    if (first === undefined) return undefined
    const { query, view } = first
    const calls: [Call, ...Call[]] = [first]
    while (calls.length < batchSizeOf(query)) {
      const next = this.#take((other) => other.query === query && other.view === view)
      if (next === undefined) break
      calls.push(next)
    }
    return calls
  }

  /** Removes the next call if `accept` returns true for it. Refuses late ones: their rows would have no client. */
  #take (accept: (call: Call) => boolean): Call | undefined {
    for (;;) {
      const call = this.#waiting.takeIf(accept)
      if (call === undefined || !this.#runner.refuseIfLate(call)) return call
    }
  }
}
