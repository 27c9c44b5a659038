import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { RoundRobinQueue } from '../round-robin-queue.ts'
import type { OtherWork } from './other-work.ts'
import { MAX_BATCH, type AnyQuery, type Call } from './query.ts'
import type { StatementRunner } from './statement-runner.ts'

/** Maximum size of the rows of one statement in bytes, if it has more than one row. */
const MAX_BATCH_BYTES = 2_500_000

/** Maximum number of statements with large rows that run at once, which leaves the other connections to other reads. */
const MAX_IN_FLIGHT = 2

/** A statement that takes longer, in ms, is followed by a pause. */
const LONG_STATEMENT_MS = 5

/** The pause after a statement beside other work, as a multiple of the statement's time. */
const PAUSE_FACTOR = 2

/** Maximum pause: on a very slow database, large reads must still end before their time-out. */
const MAX_PAUSE_MS = 1_000

/** A process is idle if these turns of its event loop pass at once. */
const IDLE_TURNS = 64

/** Returns how many inputs one statement of a query takes. */
function batchSizeOf ({ maxRowBytes = 1 }: AnyQuery): number {
  return Math.max(1, Math.min(MAX_BATCH, Math.floor(MAX_BATCH_BYTES / maxRowBytes)))
}

/**
 * Runs calls whose rows can be large. Accounts take turns. Beside other work, one statement runs at a time, and a pause
 * of twice its time follows: large reads take a third of the time of one connection. Without other work,
 * `MAX_IN_FLIGHT` statements run at once, without pauses.
 */
export class LargeReads {
  readonly #runner: StatementRunner
  readonly #otherWork: OtherWork
  /** Calls that wait, by account. */
  readonly #waiting = new RoundRobinQueue<unknown, Call>()
  readonly #maxInFlight: number
  /** Statements that run, or whose pause has not ended. */
  #inFlight = 0
  #isScheduled = false

  constructor (runner: StatementRunner, otherWork: OtherWork, readers: number) {
    this.#runner = runner
    this.#otherWork = otherWork
    this.#maxInFlight = Math.min(MAX_IN_FLIGHT, readers)
  }

  add (call: Call): void {
    this.#waiting.add((call.input as { account?: unknown }).account, call)
    if (this.#isScheduled) return
    this.#isScheduled = true
    // Calls of one turn of the event loop share a statement.
    setImmediate(() => {
      this.#isScheduled = false
      this.#start()
    })
  }

  #start (): void {
    while (this.#inFlight < (this.#otherWork.hasWrites() ? 1 : this.#maxInFlight)) {
      const calls = this.#takeBatch()
      if (calls === undefined) return
      this.#inFlight++
      void this.#run(calls)
    }
  }

  #takeBatch (): [Call, ...Call[]] | undefined {
    const first = this.#take(() => true)
    if (first === undefined) return undefined
    const { query } = first
    const calls: [Call, ...Call[]] = [first]
    while (calls.length < batchSizeOf(query)) {
      const next = this.#take((other) => other.query === query)
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

  async #run (calls: [Call, ...Call[]]): Promise<void> {
    const began = performance.now()
    const ms = await this.#runner.run({ query: calls[0].query, calls })
    await nextTurn()
    if (ms >= LONG_STATEMENT_MS) await this.#pause(began, Math.min(PAUSE_FACTOR * ms, MAX_PAUSE_MS))
    this.#inFlight--
    this.#start()
  }

  /** Waits for a time, but on an idle process only while there is other work. */
  async #pause (statementBegan: number, ms: number): Promise<void> {
    const end = performance.now() + ms
    for (let turn = 0; turn < IDLE_TURNS; turn++) {
      const left = end - performance.now()
      if (left <= 0) return
      // By time: while PostgreSQL works, the turns of this process pass at once.
      if (this.#otherWork.isPresentSince(statementBegan)) return await sleep(left)
      await nextTurn()
    }
  }
}
