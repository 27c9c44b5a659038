import type { Dialect } from '../dialect.ts'
import type { Run } from '../statements.ts'

/**
 * A read that many requests share: one statement over the rows of all their inputs.
 *
 * `sql` reads the inputs as a FROM item with their members and `ord`, their number from 1 (`ordinality`). It must
 * select `ord`, and return at most one row per input.
 *
 * An input with an `account` counts for `QUEUE_LIMIT`, and can be refused. Without one it never is: what the service
 * runs at an interval, which requests could otherwise keep from running at all, and look-ups of keys, before which
 * nobody knows whose request it is.
 */
export interface Query<Input extends object, Row> {
  sql: (dialect: Dialect) => string
  /** Maximum size of a row in bytes, if rows can be large. */
  maxRowBytes?: number
  /** For one input, the database can need about as much time as the service needs for the request: a list. */
  isCostly?: boolean
  /** Never set: it only declares the type of the statement's rows. */
  row?: Row
  input?: Input
}

/** Runs a query for one input. Resolves to `undefined` if the query returns no row for it. */
export type Read = <Input extends object, Row>(query: Query<Input, Row>, input: Input) => Promise<Row | undefined>

/** Runs a function whose reads all see the same moment, with the reads of an account. */
export type ReadView = <Result>(account: number, use: (read: Read) => Promise<Result>) => Promise<Result>

export type AnyQuery = Query<object, unknown>

/** A read that waits for its statement, or for the rows of it. */
export interface Call {
  query: AnyQuery
  input: object
  account: number | undefined
  /** When the call arrived, as a time of `performance.now()`. */
  since: number
  resolve: (row: unknown) => void
  reject: (error: unknown) => void
  /** Runs the statements of the view that the call reads in, if it is one of several. */
  view: Run | undefined
}

/** Maximum number of inputs in one statement: enough to share its cost, few enough for a short result. */
export const MAX_BATCH = 128
