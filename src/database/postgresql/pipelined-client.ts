import pg from 'pg'
import type { OwnStatement } from '../statements.ts'
import type { PreparedStatements } from './prepared-statements.ts'
import { StatementBatch } from './statement-batch.ts'

/** A connection that can run several statements in one round trip. */
export class PipelinedClient extends pg.Client {
  readonly #prepared: PreparedStatements = new Map()
  readonly #timeout: number

  /** @param timeout maximum time of statements that travel together, in ms */
  constructor (config: pg.ClientConfig | undefined, timeout: number) {
    super(config)
    this.#timeout = timeout
  }

  /** Runs statements as `Run` says. */
  async run (statements: readonly OwnStatement[]): Promise<object[][]> {
    // Not the `query_timeout` of node-postgres: it assigns a closure to the query, which V8 creates in the old
    // generation. Until a full collection, each would keep the statements and their rows.
    const timer = setTimeout(() => { this.connection.stream.destroy() }, this.#timeout)
    try {
      return await new Promise((resolve, reject) => {
        const batch = new StatementBatch(statements, this.#prepared, (error, rows) => {
          if (error === null) resolve(rows!)
          else reject(error)
        })
        this.query(batch as unknown as pg.Submittable)
      })
    } catch (error) {
      if (isStalePlan(error)) this.#prepared.clear()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Tells whether a prepared statement failed because an ALTER TABLE has changed the types of its result. */
export function isStalePlan (error: unknown): boolean {
  return (error as { code?: string }).code === '0A000'
}
