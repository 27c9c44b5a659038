import DataLoader from 'dataloader'
import { DatabaseUnavailable, Overloaded } from '../errors.ts'
import type { Meter } from '../meter.ts'
import type { Dialect } from './dialect.ts'
import { failureKind, withDeadline } from './failure.ts'
import type { Database } from './open.ts'

/**
 * A read that many requests share: one statement over the rows of all their inputs.
 *
 * `sql` gets `input` as a FROM item with the columns of `inputs` and `ord`, the input's number, which
 * it must select. At most one row per input comes back.
 */
export interface Query<Input extends object, Row> {
  name: string
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
  meter?: Meter | undefined
}

/** Inputs in one statement at most: enough to share its cost, few enough to keep its answer short. */
const MAX_BATCH = 128

type Row = Record<string, unknown> & { ord: bigint | number }

/**
 * Reads coalesced: all calls of one query in one turn of the event loop become one statement; a call
 * that is alone waits for nobody.
 *
 * @throws Overloaded when too many wait, DatabaseUnavailable when the database does not answer
 */
export function createRead (database: Database, { queueLimit, timeout, meter }: ReadOptions): Read {
  const loaders = new Map<Query<object, unknown>, DataLoader<object, unknown>>()
  let waiting = 0
  meter?.queue('read', () => waiting)

  function loaderOf (query: Query<object, unknown>): DataLoader<object, unknown> {
    let loader = loaders.get(query)
    if (loader === undefined) {
      const sql = query.sql(database.dialect)
      loader = new DataLoader(async (inputs) => await run(sql, inputs), {
        cache: false,
        maxBatchSize: MAX_BATCH,
        batchScheduleFn: meter === undefined ? setImmediate : measured(meter)
      })
      loaders.set(query, loader)
    }
    return loader
  }

  async function run (sql: string, inputs: readonly object[]): Promise<unknown[]> {
    const began = meter === undefined ? 0 : performance.now()
    try {
      const numbered = JSON.stringify(inputs.map((input, ord) => ({ ord, ...input })))
      const rows = await withDeadline(database.reader.$queryRawUnsafe<Row[]>(sql, numbered), timeout)
      // Filled, because DataLoader takes an array with a hole at its end for no array.
      const answers = new Array<unknown>(inputs.length).fill(undefined)
      for (const row of rows) answers[Number(row.ord)] = row
      return answers
    } catch (error) {
      throw failureKind(error) === 'refused' ? error : new DatabaseUnavailable({ cause: error })
    } finally {
      waiting -= inputs.length
      meter?.done('read', inputs.length, performance.now() - began)
    }
  }

  return async function read<Input extends object, Row> (query: Query<Input, Row>, input: Input) {
    if (waiting >= queueLimit) throw new Overloaded()
    waiting++
    return await loaderOf(query as Query<object, unknown>).load(input) as Row | undefined
  }
}

/** A schedule that tells how long the first read of each batch waited. */
function measured (meter: Meter): (begin: () => void) => void {
  return (begin) => {
    const since = performance.now()
    setImmediate(() => {
      meter.begun('read', performance.now() - since)
      begin()
    })
  }
}
