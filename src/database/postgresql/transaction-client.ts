import pg from 'pg'
import type { OwnStatement } from '../statements.ts'
import { BEGIN, COMMIT, StatementBatch, type NamedStatement, type PreparedColumns } from './statement-batch.ts'
import { nameOf } from './statement-names.ts'

type Query = (config: string | { text: string }, ...rest: unknown[]) => unknown

const NO_ROWS: pg.QueryArrayResult = { command: '', rowCount: 0, oid: 0, fields: [], rows: [] }

/**
 * A connection for transactions. BEGIN waits for the first statement and travels with it, and COMMIT can travel with
 * the last: waiting for each would cost a transaction two round trips.
 */
export class TransactionClient extends pg.Client {
  #isBeginPending = false
  readonly #prepared: PreparedColumns = new Map()
  readonly #send: Query

  constructor (config?: string | pg.ClientConfig) {
    super(config)
    this.#send = super.query.bind(this)
    // A method of its own would have to repeat the overloads of `query`.
    this.query = ((config, ...rest) => this.#query(config, rest)) as Query as typeof this.query
  }

  /** Runs statements in one round trip, and returns the rows of each. After one that fails, no other runs. */
  async runTogether (statements: readonly OwnStatement[]): Promise<object[][]> {
    return this.#takeBegin()
      ? (await this.#run([BEGIN, ...statements])).slice(1)
      : await this.#run(statements)
  }

  /** Runs the last statements of a transaction, and commits in the same round trip. */
  async commitAfter (statements: readonly OwnStatement[]): Promise<object[][]> {
    if (statements.length === 0 && this.#takeBegin()) return []
    return await this.runTogether([...statements, COMMIT])
  }

  #query (config: string | { text: string }, rest: unknown[]): unknown {
    const text = typeof config === 'string' ? config : config.text
    if (text === 'BEGIN') {
      this.#isBeginPending = true
      return Promise.resolve(NO_ROWS)
    }
    if (this.#takeBegin()) {
      // The transaction ends before its first statement.
      if (text === 'ROLLBACK') return Promise.resolve(NO_ROWS)
      // If it fails, the connection is lost, and with it the statement behind it.
      this.#run([BEGIN]).catch(() => {})
    }
    return this.#send(config, ...rest)
  }

  #takeBegin (): boolean {
    const isPending = this.#isBeginPending
    this.#isBeginPending = false
    return isPending
  }

  async #run (statements: readonly OwnStatement[]): Promise<object[][]> {
    const named = statements.map((statement): NamedStatement => ({ ...statement, name: nameOf(statement.sql) }))
    return await new Promise((resolve, reject) => {
      const batch = new StatementBatch(named, this.#prepared, (error, rows) => {
        if (error === null) resolve(rows!)
        else reject(error)
      })
      this.#send(batch as unknown as { text: string })
    })
  }
}
