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
 * Returns a function that runs calls whose rows can be large. Accounts take turns, and one statement runs at a time, so
 * that small reads and writes find free connections on a server, and most of the time of the process.
 */
export function createLargeReads (runner: StatementRunner, { charge }: RunnerOptions): (call: Call) => void {
  /** Calls that wait, by account. */
  const waiting = new RoundRobinQueue<number | undefined, Call>()
  let isRunning = false

  async function runAll (): Promise<void> {
    isRunning = true
    for (;;) {
      // Calls of one turn of the event loop share a statement.
      await nextTurn()
      const calls = takeBatch()
      if (calls.length === 0) break
      const ms = await runner.run(calls)
      charge?.(calls.flatMap(({ account }) => account ?? []), performance.now() - ms)
      if (ms > LONG_STATEMENT_MS) await sleep(Math.min(PAUSE_FACTOR * ms, MAX_PAUSE_MS))
    }
    isRunning = false
  }

  /** Removes the next calls that can share a statement. Refuses late ones: their rows would have no client. */
  function takeBatch (): Call[] {
    const calls: Call[] = []
    for (;;) {
      const [first] = calls
      const call = waiting.takeIf(({ query, view }) =>
        first === undefined || (query === first.query && view === first.view))
      if (call === undefined) return calls
      if (runner.refuseIfLate(call)) continue
      if (calls.push(call) === batchSizeOf(call.query)) return calls
    }
  }

  return (call) => {
    waiting.add(call.account, call)
    if (!isRunning) void runAll()
  }
}
