import { createHash } from 'node:crypto'
import type pg from 'pg'
import { BEGIN, COMMIT, type OwnStatement } from '../statements.ts'

/**
 * The statements that a connection has prepared, by their texts. Each takes about 0.1 MB in the server. A client that
 * sends every list and every write makes a connection prepare some 50 for reads, or 90 for writes.
 */
export type PreparedStatements = Map<string, { name: string, columns: Column[] }>

interface Column { name: string, parse: (text: string) => unknown }

/**
 * Statements that travel together: one message to the server, one answer. They end with one Sync, so the server skips
 * what follows a failed statement, COMMIT among it. No statement can run without the BEGIN before it.
 *
 * An object that node-postgres accepts as a query: it calls `submit`, and `handle…` for each message of the answer.
 */
export class StatementBatch {
  readonly #statements: readonly OwnStatement[]
  readonly #prepared: PreparedStatements
  readonly #resolve: (rows: object[][]) => void
  readonly #reject: (error: Error) => void
  readonly #rows: object[][] = []
  #wire: pg.Connection | undefined
  #current: object[] = []
  #columns: Column[] | undefined
  #failure: Error | undefined

  constructor (
    statements: readonly OwnStatement[], prepared: PreparedStatements, resolve: (rows: object[][]) => void,
    reject: (error: Error) => void
  ) {
    this.#statements = statements
    this.#prepared = prepared
    this.#resolve = resolve
    this.#reject = reject
  }

  submit (wire: pg.Connection): void {
    this.#wire = wire
    wire.stream.cork()
    // `true`: other messages follow.
    for (const { sql, values } of this.#statements) {
      const prepared = this.#prepared.get(sql)
      const name = prepared?.name ?? nameOf(sql)
      if (prepared === undefined) {
        // An attempt that failed may have left the statement. The server ignores a Close without one.
        wire.close({ type: 'S', name }, true)
        wire.parse({ name, text: sql, types: [] }, true)
      }
      const texts = values.map((value) => value == null ? null : `${value as string | number}`)
      wire.bind({ statement: name, values: texts }, true)
      if (prepared === undefined) wire.describe({ type: 'P' }, true)
      wire.execute({}, true)
    }
    wire.sync()
    wire.stream.uncork()
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
    if (this.#failure === undefined) this.#resolve(this.#rows)
    else this.#reject(this.#failure)
  }

  handleError (error: Error): void {
    // The connection was lost after the answer: what is committed did not fail.
    if (this.#rows.length === this.#statements.length) return this.handleReadyForQuery()
    // Otherwise, a statement that waits behind this batch would commit by itself.
    if (this.#rows.length === 0 && this.#statements[0]!.sql.startsWith(BEGIN.sql)) this.#wire?.stream.destroy()
    // An ALTER TABLE has changed the types of a result.
    if ((error as { code?: string }).code === '0A000') this.#prepared.clear()
    this.#reject(Object.assign(error, { statement: this.#rows.length }))
  }
}

/**
 * Returns the name under which connections keep a statement of the service's own prepared: PostgreSQL then parses and
 * plans it once. Prisma Client's statements have no name, because their texts are too many: one for every length of a
 * list.
 *
 * A name is a hash of the text, so that two processes behind one pool of connections never mean different statements.
 */
export function nameOf (sql: string): string {
  return `petstore_${createHash('sha256').update(sql).digest('hex').slice(0, 24)}`
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
