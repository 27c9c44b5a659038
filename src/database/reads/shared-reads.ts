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
  /** The batch of each query that has calls in this turn. */
  readonly #open = new Map<AnyQuery, Call[]>()

  constructor (runner: StatementRunner, database: DatabaseName) {
    this.#runner = runner
    this.#minCostlyBatch = MIN_COSTLY_BATCH[database]
  }

  add (call: Call): void {
    const { query } = call
    const batch = this.#open.get(query) ?? this.#openBatch(query)
    batch.push(call)
    if (batch.length >= this.#fullSizeOf(query)) this.#run(query, batch)
  }

  #openBatch (query: AnyQuery): Call[] {
    const batch: Call[] = []
    this.#open.set(query, batch)
    setImmediate(() => { if (this.#open.get(query) === batch) this.#run(query, batch) })
    return batch
  }

  #fullSizeOf ({ isCostly }: AnyQuery): number {
    if (isCostly !== true) return MAX_BATCH
    return Math.min(MAX_BATCH, Math.max(this.#minCostlyBatch, this.#runner.waiting / 4))
  }

  #run (query: AnyQuery, batch: Call[]): void {
    this.#open.delete(query)
    void this.#runner.run(query, batch)
  }
}
