import { DatabaseUnavailable, Overloaded } from '../errors.ts'
import type { Instrumentation } from '../monitoring/instrumentation.ts'
import type { Dialect } from './dialect.ts'
import { classifyError, withDeadline } from './error-classification.ts'
import type { Database } from './prisma-client.ts'
import { queryRows } from './run-statement.ts'

/**
 * A read that many requests share: one statement over the rows of all their inputs.
 *
 * `sql` reads the inputs as a FROM item with their members and `ord`, their number from 1 (`ordinality`). It must
 * select `ord`, and return at most one row per input.
 */
export interface Query<Input extends object, Row> {
  sql: (dialect: Dialect) => string
  /** Never set: it only declares the type of the statement's rows. */
  row?: Row
  input?: Input
}

/** Runs a query for one input. Resolves to `undefined` if the query returns no row for it. */
export type Read = <Input extends object, Row>(query: Query<Input, Row>, input: Input) => Promise<Row | undefined>

export interface ReadOptions {
  /** Maximum number of reads that wait for the database. The service refuses further reads. */
  queueLimit: number
  /** Maximum time that one read waits, in ms. */
  timeout: number
  instrumentation?: Instrumentation | undefined
}

/** Maximum number of inputs in one statement: enough to share its cost, few enough for a short result. */
const MAX_BATCH = 128

type Row = Record<string, unknown> & { ord: bigint | number }

/** Reads of one query that share a statement. */
interface Batch {
  sql: string
  since: number
  inputs: object[]
  calls: Array<{ resolve: (row: unknown) => void, reject: (error: unknown) => void }>
}

/**
 * Returns a function that batches reads: all calls of one query in one turn of the event loop become one statement. A
 * single call waits for no others.
 *
 * @throws Overloaded if too many reads wait, DatabaseUnavailable if the database does not respond
 */
export function createRead (database: Database, { queueLimit, timeout, instrumentation }: ReadOptions): Read {
  const texts = new Map<Query<object, unknown>, string>()
  /** The batch of each query that has calls in this turn. */
  const open = new Map<Query<object, unknown>, Batch>()
  let waiting = 0
  instrumentation?.queue('read', () => waiting)

  function textOf (query: Query<object, unknown>): string {
    let text = texts.get(query)
    if (text === undefined) {
      text = query.sql(database.dialect)
      texts.set(query, text)
    }
    return text
  }

  function batchOf (query: Query<object, unknown>): Batch {
    const gathering = open.get(query)
    if (gathering !== undefined && gathering.calls.length < MAX_BATCH) return gathering
    const batch: Batch = { sql: textOf(query), since: now(), inputs: [], calls: [] }
    open.set(query, batch)
    setImmediate(() => {
      if (open.get(query) === batch) open.delete(query)
      answer(batch)
    })
    return batch
  }

  function answer ({ sql, since, inputs, calls }: Batch): void {
    const began = now()
    instrumentation?.batchStarted('read', began - since)
    withDeadline(queryRows<Row>(database.reader, sql, [inputs]), timeout).finally(() => {
      waiting -= calls.length
      instrumentation?.batchFinished('read', calls.length, now() - began)
    }).then((rows) => {
      for (const row of rows) calls[Number(row.ord) - 1]!.resolve(row)
      // Has no effect on calls that already have their row.
      for (const { resolve } of calls) resolve(undefined)
    }, (error: unknown) => {
      const reason = classifyError(error) === 'statement error' ? error : new DatabaseUnavailable({ cause: error })
      for (const { reject } of calls) reject(reason)
    })
  }

  /** Returns the time, or 0 without instrumentation, which alone uses it. */
  function now (): number {
    return instrumentation === undefined ? 0 : performance.now()
  }

  return async function read<Input extends object, Row> (query: Query<Input, Row>, input: Input) {
    if (waiting >= queueLimit) throw new Overloaded()
    waiting++
    const { inputs, calls } = batchOf(query)
    inputs.push(input)
    return await new Promise<Row | undefined>((resolve, reject) => {
      calls.push({ resolve: resolve as (row: unknown) => void, reject })
    })
  }
}
