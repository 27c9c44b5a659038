import pg from 'pg'
import type { OwnStatement } from '../statements.ts'
import { StatementBatch, type PreparedStatements } from './statement-batch.ts'

/** A connection that can run several statements in one round trip. */
export class PipelinedClient extends pg.Client {
  readonly #prepared: PreparedStatements = new Map()

  /** Runs statements as `Run` says. */
  async run (statements: readonly OwnStatement[]): Promise<object[][]> {
    return await new Promise((resolve, reject) => {
      this.query(new StatementBatch(statements, this.#prepared, resolve, reject))
    })
  }
}
