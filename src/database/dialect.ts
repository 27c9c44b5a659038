import { getOrAdd } from './get-or-add.ts'
import type { OwnStatement } from './statements.ts'

/**
 * What the two databases express differently. Statements are written once, with these few words filled in; no
 * statement outside this folder depends on the database that it is for.
 */
export interface Dialect {
  readonly name: DatabaseName
  /**
   * Returns a FROM item: a parameter of the statement, a JSON array of objects, as rows of typed columns. Only
   * PostgreSQL uses the parameter's number, the first by default; SQLite numbers parameters in order of appearance.
   */
  jsonRows: (alias: string, columns: Record<string, InputType>, parameter?: number) => string
  /** A text as a JSON string, quoted and escaped. */
  quote: (text: string) => string
  /** A stored instant as RFC 3339 in UTC with milliseconds. */
  time: (column: string) => string
  /** An RFC 3339 text (or NULL) as the value of a date-time column. */
  toTime: (text: string) => string
  /** An RFC 3339 text, some seconds later, as the value of a date-time column; not after the last instant. */
  later: (text: string, seconds: string) => string
  /** A text as a value of a PostgreSQL enum; SQLite stores the text. */
  toEnum: (text: string, type: string) => string
  /**
   * Keyset pagination that walks one index: the rows with the given values, after a position, in its order. A planner
   * with wrong estimates would walk the whole table by its key and filter.
   */
  keyset: Keyset
  /** Returns a FROM item in which the table with an alias is read by an index, if the database must be told. */
  useIndex: (from: string, alias: string, index: string) => string
  /** A condition on a column for which the database uses no index: that of another condition serves. */
  equalsWithoutIndex: (column: string, value: string) => string
  /**
   * The number of rows of a LIMIT that belongs to `input`, a row around the query with a member `limit`. As a column
   * where the database allows one: a text for each number would be a prepared statement for each.
   */
  limit: (input: string, limit: number) => string
  /** Whether a column is one of the numbers in a JSON array (an input of type `json`). */
  inJsonArray: (column: string, array: string) => string
  /** Whether a column is one of a subquery's few values, each looked up in the column's index. */
  inSubquery: (column: string, subquery: string) => string
  /** The column with the address of a row, for a table whose key has several columns. Valid within a statement. */
  rowAddress: string
  /** Returns FROM and WHERE: the rows of a table whose id is one of a subquery's few, in its column `id`. */
  fromByIds: (table: string, alias: string, column: string, ids: string) => string
  /** The text of a member of a JSON object, or NULL. */
  jsonMember: (object: string, name: string) => string
  /**
   * Whether the database is a server: its rows can be locked, which SQLite's single writer does not need. A statement
   * may contain others that write (data-modifying CTEs), one round trip for several, and a FROM item may refer to those
   * before it (LATERAL), so that one statement takes the first rows for many inputs.
   */
  isServer: boolean
  /** A clause that locks rows until the end of the transaction; empty without row locks. */
  locking: (clause: string) => string
  /**
   * Returns statements that keep allocated ids, up to `last`, from being allocated again, if no row with them is
   * inserted in this commit.
   */
  keepIds: (table: string, last: number) => OwnStatement[]
  /**
   * Allocates ids of a table, as many as the parameter says, as ranges without gaps in rows `first` and `last`. Only
   * inside a commit.
   */
  newIds: (table: string, column: string) => string
}

export type Keyset = (
  columns: Array<[column: string, value: string]>, position: string, after: string, descending: boolean
) => { where: string, orderBy: string }

export type DatabaseName = 'sqlite' | 'postgresql'

/** `ordinality` is the type of `ord`, which is no member of the objects: it numbers them, from 1. */
export type InputType = 'bigint' | 'text' | 'boolean' | 'json' | 'ordinality'

/** Returns the database that a `DATABASE_URL` names. */
export function databaseOf (url: string): DatabaseName {
  return url.startsWith('file:') ? 'sqlite' : 'postgresql'
}

export const keyset: Keyset = (columns, position, after, descending) => ({
  where: [
    ...columns.map(([column, value]) => `${column} = ${value}`),
    `${position} ${descending ? '<' : '>'} ${after}`
  ].join(' AND '),
  orderBy: `${position} ${descending ? 'DESC' : 'ASC'}`
})

/** Returns a function that builds a text once for each dialect. */
export function oncePerDialect<Text> (build: (dialect: Dialect) => Text): (dialect: Dialect) => Text {
  const built = new WeakMap<Dialect, Text>()
  return (dialect) => getOrAdd(built, dialect, () => build(dialect))
}
