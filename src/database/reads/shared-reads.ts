import { getOrAdd } from '../get-or-add.ts'
import type { DatabaseName } from '../dialect.ts'
import { MAX_BATCH, type AnyQuery, type Call } from './query.ts'
import type { StatementRunner } from './statement-runner.ts'

/**
 * A statement of a costly query starts when it has this number of inputs: PostgreSQL works on it while the service
 * handles the other requests of the turn. SQLite works in this thread.
 */
const COSTLY_BATCH: Record<DatabaseName, number> = { sqlite: MAX_BATCH, postgresql: 16 }

/**
 * Collects the calls of each query in one turn of the event loop, which share a statement, or a few. Tells reads that
 * are alone in their turn from those of a crowd.
 */
export function createSharedReads (runner: StatementRunner, database: DatabaseName) {
  /** The calls of this turn, by their queries. */
  let open = new Map<AnyQuery, Call[]>()
  let readsInTurn = 0
  /** Whether the last turn with a read had several: then others are likely to come in this turn. */
  let isCrowded = false

  /** Counts a read of any kind. Returns whether it is the first of this turn and no others are expected. */
  function isAlone (): boolean {
    const isFirst = readsInTurn++ === 0
    if (isFirst) setImmediate(endTurn)
    return isFirst && !isCrowded
  }

  /** Adds a read that was counted. */
  function add (call: Call): void {
    const { query } = call
    const calls = getOrAdd(open, query, (): Call[] => [])
    calls.push(call)
    if (calls.length < (query.isCostly === true ? COSTLY_BATCH[database] : MAX_BATCH)) return
    open.delete(query)
    void runner.run(calls)
  }

  function endTurn (): void {
    isCrowded = readsInTurn > 1
    readsInTurn = 0
    if (open.size === 0) return
    const ended = open.values()
    // Not `clear`: V8 links the entries of a cleared map to those that come later, and keeps them as long.
    open = new Map()
    for (const calls of ended) void runner.run(calls)
  }

  return { isAlone, add }
}
