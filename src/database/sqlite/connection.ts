import type { DatabaseSyncInstance, DatabaseSyncOptions, StatementSyncInstance } from '@photostructure/sqlite'
import type { ColumnType, SqlQuery, SqlResultSet } from '@prisma/driver-adapter-utils'
import { LRUCache } from 'lru-cache'
import { getOrAdd } from '../get-or-add.ts'
import { declaredType, toParameter, toResultSet } from './conversions.ts'
import { openFile } from './driver.ts'

/**
 * Maximum number of prepared statements. The service has about a hundred; Prisma Client, and the service in a few
 * cases, have a different text for each length of a list.
 */
const MAX_STATEMENTS = 300

interface Prepared {
  statement: StatementSyncInstance
  /** The columns do not change while the connection is open: migrations have connections of their own. */
  names: string[]
  types: Array<ColumnType | undefined>
}

/**
 * A connection to a SQLite file. It prepares each statement once: to prepare one costs as much as to run a small one,
 * and leaves an object that the garbage collector must close.
 */
export class SqliteConnection {
  readonly #database: DatabaseSyncInstance
  readonly #prepared = new LRUCache<string, Prepared>({ max: MAX_STATEMENTS })

  /** @param options with `readBigInts` for Prisma Client */
  constructor (path: string, options: DatabaseSyncOptions = {}) {
    this.#database = openFile(path, { ...options, returnArrays: true })
  }

  /** Returns the rows of one of the service's own statements, none if it only writes. */
  all (sql: string, values: readonly unknown[]): object[] {
    const { statement, names } = this.#prepare(sql)
    return (statement.all(...values) as unknown[][]).map((row) => toObject(names, row))
  }

  /** Runs a statement of Prisma Client, and returns its rows. */
  query ({ sql, args, argTypes }: SqlQuery): SqlResultSet {
    const { statement, names, types } = this.#prepare(sql)
    const rows = statement.all(...args.map((arg, i) => toParameter(arg, argTypes[i]!))) as unknown[][]
    return toResultSet(names, types, rows)
  }

  /** Runs a statement of Prisma Client, and returns the number of rows that it changed. */
  execute ({ sql, args, argTypes }: SqlQuery): number {
    const { statement } = this.#prepare(sql)
    return Number(statement.run(...args.map((arg, i) => toParameter(arg, argTypes[i]!))).changes)
  }

  /** Runs several statements. */
  runScript (script: string): void {
    this.#database.exec(script)
  }

  /** Closes the file, for other processes at the end of this one at the latest: see `releaseClosedFiles`. */
  close (): void {
    this.#prepared.clear()
    this.#database.close()
  }

  #prepare (sql: string): Prepared {
    return getOrAdd(this.#prepared, sql, () => {
      const statement = this.#database.prepare(sql)
      const columns = statement.columns()
      return { statement, names: columns.map(({ name }) => name), types: columns.map(({ type }) => declaredType(type)) }
    })
  }
}

/** Makes an object of a row. The driver's own objects take a fifth more time for a row, and have no prototype. */
function toObject (names: readonly string[], row: readonly unknown[]): object {
  const object: Record<string, unknown> = {}
  for (let i = 0; i < names.length; i++) object[names[i]!] = row[i]
  return object
}
