import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite'
import type { ColumnType, SqlQuery, SqlResultSet } from '@prisma/driver-adapter-utils'
import { LRUCache } from 'lru-cache'
import { declaredType, toParameter, toResultSet, type Parameter } from './conversions.ts'
import { closeFile, openFile } from './driver.ts'
import { withSqliteErrors } from './errors.ts'

/**
 * Maximum number of prepared statements. The service has about a hundred; Prisma Client, and the service in a few
 * cases, have a different text for each length of a list.
 */
const MAX_STATEMENTS = 300

interface Prepared {
  statement: StatementSyncInstance
  /** Whether its rows are arrays with bigints, for Prisma, or objects with numbers, for the service. */
  isForPrisma: boolean
  /** They do not change while the connection is open: migrations have connections of their own. */
  columns?: { names: string[], types: Array<ColumnType | undefined> }
}

/**
 * A connection to a SQLite file. It prepares each statement once: to prepare one costs as much as to run a small one,
 * and leaves an object that the garbage collector must close.
 *
 * Every method throws `SqliteError` if SQLite reports an error.
 */
export class SqliteConnection {
  readonly #database: DatabaseSyncInstance
  readonly #prepared = new LRUCache<string, Prepared>({ max: MAX_STATEMENTS })

  constructor (path: string) {
    this.#database = withSqliteErrors(() => openFile(path))
  }

  /**
   * Returns the rows of one of the service's own statements, none if it only writes. Ids and counts fit a double,
   * because the contract keeps ids below 2^53.
   */
  all (sql: string, values: readonly unknown[]): object[] {
    return withSqliteErrors(() => this.#prepare(sql, false).statement.all(...values as Parameter[]) as object[])
  }

  /** Returns the first row of one of the service's own statements. */
  get (sql: string, values: readonly unknown[]): object | undefined {
    return withSqliteErrors(() =>
      this.#prepare(sql, false).statement.get(...values as Parameter[]) as object | undefined)
  }

  /** Runs a statement of Prisma Client, and returns its rows. */
  query ({ sql, args, argTypes }: SqlQuery): SqlResultSet {
    return withSqliteErrors(() => {
      const prepared = this.#prepare(sql, true)
      const rows = prepared.statement.all(...args.map((arg, i) => toParameter(arg, argTypes[i]!))) as unknown[][]
      const { names, types } = prepared.columns ??= columnsOf(prepared.statement)
      return toResultSet(names, types, rows)
    })
  }

  /** Runs a statement of Prisma Client, and returns the number of rows that it changed. */
  execute ({ sql, args, argTypes }: SqlQuery): number {
    return withSqliteErrors(() => {
      const { statement } = this.#prepare(sql, true)
      return Number(statement.run(...args.map((arg, i) => toParameter(arg, argTypes[i]!))).changes)
    })
  }

  /** Runs several statements. */
  runScript (script: string): void {
    withSqliteErrors(() => { this.#database.exec(script) })
  }

  async close (): Promise<void> {
    this.#prepared.clear()
    await closeFile(this.#database)
  }

  #prepare (sql: string, isForPrisma: boolean): Prepared {
    let prepared = this.#prepared.get(sql)
    if (prepared === undefined) {
      prepared = { statement: this.#database.prepare(sql), isForPrisma: false }
      this.#prepared.set(sql, prepared)
    }
    if (prepared.isForPrisma !== isForPrisma) {
      prepared.statement.setReadBigInts(isForPrisma)
      prepared.statement.setReturnArrays(isForPrisma)
      prepared.isForPrisma = isForPrisma
    }
    return prepared
  }
}

function columnsOf (statement: StatementSyncInstance): Prepared['columns'] & object {
  const columns = statement.columns()
  return { names: columns.map(({ name }) => name), types: columns.map(({ type }) => declaredType(type)) }
}
