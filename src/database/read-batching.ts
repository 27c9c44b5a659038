import { DatabaseUnavailable, Overloaded } from '../errors.ts'
import type { Instrumentation } from '../monitoring/instrumentation.ts'
import type { Dialect } from './dialect.ts'
import { classifyError, withDeadline } from './error-classification.ts'
import type { Database } from './prisma-client.ts'
import { queryRows } from './run-statement.ts'

/**
 * A read that many requests share: one statement over the rows of all their inputs.
 *
 * `sql` reads the inputs as a FROM item with their members and `ord`, their number from 1 (`ordinality`),
 * which it must select. At most one row per input comes back.
 */
export interface Query<Input extends object, Row> {
  sql: (dialect: Dialect) => string
  /** Only a type: says what the statement's rows are. */
  row?: Row
  input?: Input
}

/** Runs a query for one input; `undefined` when no row came back for it. */
export type Read = <Input extends object, Row>(query: Query<Input, Row>, input: Input) => Promise<Row | undefined>

export interface ReadOptions {
  /** How many reads may wait for the database before the next is refused. */
  queueLimit: number
  /** How long one may wait, in ms. */
  timeout: number
  instrumentation?: Instrumentation | undefined
}

/** Inputs in one statement at most: enough to share its cost, few enough to keep its answer short. */
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
 * Reads coalesced: all calls of one query in one turn of the event loop become one statement; a call
 * that is alone waits for nobody.
 *
 * @throws Overloaded when too many wait, DatabaseUnavailable when the database does not answer
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
      // Those that have their row do not hear this.
      for (const { resolve } of calls) resolve(undefined)
    }, (error: unknown) => {
      const reason = classifyError(error) === 'statement error' ? error : new DatabaseUnavailable({ cause: error })
      for (const { reject } of calls) reject(reason)
    })
  }

  /** Only a instrumentation asks for the time. */
  function now (): number {
    return instrumentation === undefined ? 0 : performance.now()
  }

  return async function read<Input extends object, Row> (query: Query<Input, Row>, input: Input) {
    if (waiting >= queueLimit) throw new Overloaded()
    waiting++
    const { inputs, calls } = batchOf(query as Query<object, unknown>)
    inputs.push(input)
    return await new Promise<Row | undefined>((resolve, reject) => { calls.push({ resolve: resolve as (row: unknown) => void, reject }) })
  }
}
