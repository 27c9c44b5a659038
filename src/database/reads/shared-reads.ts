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
export class SharedReads {
  readonly #runner: StatementRunner
  readonly #costlyBatch: number
  /** The calls of this turn, by their queries. */
  #open = new Map<AnyQuery, Call[]>()
  #readsInTurn = 0
  /** Whether the last turn with a read had several: then others are likely to come in this turn. */
  #isCrowded = false

  constructor (runner: StatementRunner, database: DatabaseName) {
    this.#runner = runner
    this.#costlyBatch = COSTLY_BATCH[database]
  }

  /** Counts a read of any kind. Returns whether it is the first of this turn and no others are expected. */
  isAlone (): boolean {
    const isFirst = this.#readsInTurn++ === 0
    if (isFirst) setImmediate(() => { this.#endTurn() })
    return isFirst && !this.#isCrowded
  }

  /** Adds a read that was counted. */
  add (call: Call): void {
    const { query } = call
    const calls = getOrAdd(this.#open, query, (): Call[] => [])
    calls.push(call)
    if (calls.length >= this.#fullSizeOf(query)) {
      this.#open.delete(query)
      void this.#runner.run(calls)
    }
  }

  #fullSizeOf ({ isCostly }: AnyQuery): number {
    return isCostly === true ? this.#costlyBatch : MAX_BATCH
  }

  #endTurn (): void {
    this.#isCrowded = this.#readsInTurn > 1
    this.#readsInTurn = 0
    if (this.#open.size === 0) return
    const open = this.#open.values()
    // Not `clear`: V8 links the entries of a cleared map to those that come later, and keeps them as long.
    this.#open = new Map()
    for (const calls of open) void this.#runner.run(calls)
  }
}
