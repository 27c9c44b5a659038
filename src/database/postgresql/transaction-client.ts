import pg from 'pg'
import type { OwnStatement } from '../statements.ts'
import { PreparedStatements } from './prepared-statements.ts'
import { BEGIN, COMMIT, StatementBatch, type NamedStatement } from './statement-batch.ts'
import { nameOf } from './statement-names.ts'

interface QueryConfig { text: string, query_timeout?: number }

type Query = (config: string | QueryConfig, ...rest: unknown[]) => unknown

const NO_ROWS: pg.QueryArrayResult = { command: '', rowCount: 0, oid: 0, fields: [], rows: [] }

/**
 * A connection for transactions. BEGIN waits for the first statement and travels with it, and COMMIT can travel with
 * the last: waiting for each would cost a transaction two round trips.
 */
export class TransactionClient extends pg.Client {
  #isBeginPending = false
  readonly #prepared = new PreparedStatements()
  readonly #send: Query
  readonly #timeout: number

  /** @param timeout maximum time of a statement, or of statements that travel together, in ms */
  constructor (config: pg.ClientConfig | undefined, timeout: number) {
    super(config)
    this.#timeout = timeout
    this.#send = super.query.bind(this)
    // A method of its own would have to repeat the overloads of `query`.
    this.query = ((config, ...rest) => this.#query(config, rest)) as Query as typeof this.query
  }

  /**
   * Runs statements in one round trip, and returns the rows of each. After one that fails, no other runs: the error has
   * its position as `statement`.
   */
  async runTogether (statements: readonly OwnStatement[]): Promise<object[][]> {
    if (!this.#takeBegin()) return await this.#run(statements)
    try {
      return (await this.#run([BEGIN, ...statements])).slice(1)
    } catch (error) {
      (error as { statement?: number }).statement! -= 1
      throw error
    }
  }

  /** Runs the last statements of a transaction, and commits in the same round trip. */
  async commitAfter (statements: readonly OwnStatement[]): Promise<object[][]> {
    if (statements.length === 0 && this.#takeBegin()) return []
    return await this.runTogether([...statements, COMMIT])
  }

  /** Runs statements in one message, outside a transaction. Calls `onRows` with the rows of each when it has run. */
  async runEach (statements: readonly OwnStatement[], onRows: (rows: object[]) => void): Promise<void> {
    const rows = await this.#run(statements, onRows)
    onRows(rows.at(-1)!)
  }

  #query (query: string | QueryConfig, rest: unknown[]): unknown {
    const config = typeof query === 'string' ? { text: query } : query
    const { text } = config
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
    return this.#send({ ...config, query_timeout: this.#timeout }, ...rest)
  }

  #takeBegin (): boolean {
    const isPending = this.#isBeginPending
    this.#isBeginPending = false
    return isPending
  }

  async #run (statements: readonly OwnStatement[], onRows?: (rows: object[]) => void): Promise<object[][]> {
    const named = statements.map(({ sql, values }): NamedStatement => ({ sql, values, name: nameOf(sql) }))
    // Not the `query_timeout` of node-postgres: it assigns a closure to the query, which V8 creates in the old
    // generation. Until a full collection, each would keep the statements and their rows.
    const timer = setTimeout(() => { this.connection.stream.destroy() }, this.#timeout)
    try {
      return await new Promise((resolve, reject) => {
        const batch = new StatementBatch(named, this.#prepared, (error, rows) => {
          if (error === null) resolve(rows!)
          else reject(error)
        }, onRows)
        this.#send(batch as unknown as { text: string })
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
