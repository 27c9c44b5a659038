import { getOrAdd } from '../get-or-add.ts'
import type { DatabaseName } from '../dialect.ts'
import { MAX_BATCH, type AnyQuery, type Call } from './query.ts'
import type { StatementRunner } from './statement-runner.ts'

/**
 * A statement of a costly query starts when it has this number of inputs, or a quarter of the reads that wait, if that
 * is more. PostgreSQL works on it while the service handles the other requests of the turn. SQLite works in this
 * thread.
 */
const MIN_COSTLY_BATCH: Record<DatabaseName, number> = { sqlite: MAX_BATCH, postgresql: 16 }

/** Collects the calls of each query in one turn of the event loop, which share a statement, or a few. */
export class SharedReads {
  readonly #runner: StatementRunner
  readonly #minCostlyBatch: number
  /** The calls of this turn, by their queries. */
  #open = new Map<AnyQuery, Call[]>()

  constructor (runner: StatementRunner, database: DatabaseName) {
    this.#runner = runner
    this.#minCostlyBatch = MIN_COSTLY_BATCH[database]
  }

  add (call: Call): void {
    const { query } = call
    if (this.#open.size === 0) setImmediate(() => { this.#runAll() })
    const calls = getOrAdd(this.#open, query, (): Call[] => [])
    calls.push(call)
    if (calls.length >= this.#fullSizeOf(query)) {
      this.#open.delete(query)
      void this.#runner.run(calls)
    }
  }

  #fullSizeOf ({ isCostly }: AnyQuery): number {
    if (isCostly !== true) return MAX_BATCH
    return Math.min(MAX_BATCH, Math.max(this.#minCostlyBatch, this.#runner.waiting / 4))
  }

  #runAll (): void {
    const open = this.#open.values()
    // Not `clear`: V8 links the entries of a cleared map to those that come later, and keeps them as long.
    this.#open = new Map()
    for (const calls of open) void this.#runner.run(calls)
  }
}
