import { MAX_BATCH, type AnyQuery, type Call } from './query.ts'
import type { StatementRunner } from './statement-runner.ts'

/** Collects the calls of each query in one turn of the event loop, which share a statement. */
export class SharedReads {
  readonly #runner: StatementRunner
  /** The batch of each query that has calls in this turn. */
  readonly #open = new Map<AnyQuery, Call[]>()

  constructor (runner: StatementRunner) {
    this.#runner = runner
  }

  add (call: Call): void {
    const { query } = call
    const batch = this.#open.get(query)
    if (batch !== undefined && batch.length < MAX_BATCH) {
      batch.push(call)
      return
    }
    const calls = [call]
    this.#open.set(query, calls)
    setImmediate(() => {
      if (this.#open.get(query) === calls) this.#open.delete(query)
      void this.#runner.run(query, calls)
    })
  }
}
