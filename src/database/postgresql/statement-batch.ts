import type { Duplex } from 'node:stream'
import { BEGIN, COMMIT, type OwnStatement } from '../statements.ts'
import { nameOf, type Column, type PreparedStatements } from './prepared-statements.ts'

/** What the batch uses of node-postgres' connection: a function for each message of the protocol. */
export interface Wire {
  stream: Duplex
  parse: (message: { name: string, text: string }) => void
  bind: (message: { statement: string, values: readonly unknown[] }) => void
  describe: (message: { type: 'P' }) => void
  execute: (message: object) => void
  close: (message: { type: 'S', name: string }) => void
  sync: () => void
}

type Settle = (error: Error | null, rows?: object[][]) => void

/**
 * Statements that travel together: one message to the server, one answer. They end with one Sync, so the server skips
 * what follows a failed statement, COMMIT among it. No statement can run without the BEGIN before it.
 *
 * An object that node-postgres accepts as a query: it calls `submit`, and `handle…` for each message of the answer.
 */
export class StatementBatch {
  /** Called once with the outcome. node-postgres wraps it if the client has a `query_timeout`. */
  callback: Settle
  readonly #statements: readonly OwnStatement[]
  readonly #prepared: PreparedStatements
  readonly #rows: object[][] = []
  #wire: Wire | undefined
  #current: object[] = []
  #columns: Column[] | undefined
  #failure: Error | undefined

  constructor (statements: readonly OwnStatement[], prepared: PreparedStatements, callback: Settle) {
    this.#statements = statements
    this.#prepared = prepared
    this.callback = callback
  }

  submit (wire: Wire): null {
    this.#wire = wire
    wire.stream.cork()
    for (const { sql, values } of this.#statements) {
      const prepared = this.#prepared.get(sql)
      const name = prepared?.name ?? nameOf(sql)
      if (prepared === undefined) {
        // An attempt that failed may have left the statement. The server ignores a Close without one.
        wire.close({ type: 'S', name })
        wire.parse({ name, text: sql })
      }
      wire.bind({ statement: name, values: values.map((value) => value == null ? null : `${value as string | number}`) })
      if (prepared === undefined) wire.describe({ type: 'P' })
      wire.execute({})
    }
    wire.sync()
    wire.stream.uncork()
    return null
  }

  handleRowDescription ({ fields }: { fields: Array<{ name: string, dataTypeID: number }> }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name, parse: PARSERS[dataTypeID] ?? asText }))
  }

  handleDataRow ({ fields }: { fields: Array<string | null> }): void {
    const columns = this.#columns ??= this.#prepared.get(this.#statements[this.#rows.length]!.sql)!.columns
    const row: Record<string, unknown> = {}
    for (let i = 0; i < columns.length; i++) {
      const { name, parse } = columns[i]!
      const text = fields[i]!
      row[name] = text === null ? null : parse(text)
    }
    this.#current.push(row)
  }

  handleCommandComplete ({ text }: { text: string }): void {
    const { sql } = this.#statements[this.#rows.length]!
    if (!this.#prepared.has(sql)) this.#prepared.set(sql, { name: nameOf(sql), columns: this.#columns ?? [] })
    if (sql === COMMIT.sql && text !== 'COMMIT') {
      this.#failure = new Error(`the database answered COMMIT with ${text}`)
    }
    this.#rows.push(this.#current)
    this.#current = []
    this.#columns = undefined
  }

  handleReadyForQuery (): void {
    if (this.#failure === undefined) this.callback(null, this.#rows)
    else this.callback(this.#failure)
  }

  handleError (error: Error): void {
    // The connection was lost after the answer: what is committed did not fail.
    if (this.#rows.length === this.#statements.length) return this.handleReadyForQuery()
    // Otherwise, a statement that waits behind this batch would commit by itself.
    if (this.#rows.length === 0 && this.#statements[0]!.sql.startsWith(BEGIN.sql)) this.#wire?.stream.destroy()
    this.callback(Object.assign(error, { statement: this.#rows.length }))
  }
}

/**
 * Values as the service works with them, by PostgreSQL's ids of their types (`SELECT oid, typname FROM pg_type`). All
 * others stay texts: a value that could not be read would make a failure of what is committed.
 */
const PARSERS: Partial<Record<number, Column['parse']>> = {
  16: (text) => text === 't', // bool
  20: Number, // int8
  21: Number, // int2
  23: Number // int4
}

const asText = (text: string): string => text
