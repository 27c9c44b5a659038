import type { Dialect } from '../database/dialect.ts'
import type { Query, Read } from '../database/reads/query.ts'
import { lastWithin } from '../database/sql/keyset-pagination.ts'
import { StoreTooLarge } from './errors.ts'
import { MAX_STORE_BYTES, MAX_STORE_ROWS, STORE_LIMIT } from './store-rows.ts'
import { rowAsJson, textBytes } from './stored-rows.ts'
import { STORED_TABLES, type StoredTable } from './stored-tables.ts'

/** A row of a store, or its copy in a snapshot. */
export interface StoredRow {
  table: StoredTable
  id: number
  /** The columns that are not NULL, as JSON values. */
  columns: Record<string, unknown>
}

/** Limits what one statement reads, so that SQLite, which works in this thread, blocks it for a few milliseconds. */
const SLICE_ROWS = 250
const SLICE_BYTES = 65_536

/** A control character takes 6 bytes in JSON, the longest text 60,000, and the other columns of a row 200. */
const MAX_SLICE_BYTES = SLICE_BYTES * 6 + 60_000 + SLICE_ROWS * 200

interface SliceInput { account: number, snapshot?: number, after: number }

interface Slice {
  /** A line of JSON for each row; NULL without rows. */
  lines: string | null
  /** The id of the last row. */
  last: number | bigint | null
  bytes: number | bigint | null
}

type SliceQuery = Query<SliceInput, Slice>

interface Source {
  /** FROM and WHERE of the rows `r` after a position. */
  rows: string
  orderBy: string
  id: string
  bytes: string
  json: string
}

function sliceQuery (sourceOf: (dialect: Dialect) => Source, inputs: Record<string, 'bigint'>): SliceQuery {
  return {
    maxRowBytes: MAX_SLICE_BYTES,
    sql: (dialect) => {
      const { rows, orderBy, id, bytes, json } = sourceOf(dialect)
      const first = `SELECT ${id} AS position, ${bytes} AS bytes ${rows} ORDER BY ${orderBy} LIMIT ${SLICE_ROWS}`
      const line = `'{"id":' || ${id} || ',"columns":' || ${json} || '}'`
      const upToLast = `${rows} AND ${id} <= i.last`
      return `
        WITH i AS MATERIALIZED (
          SELECT i.*, ${lastWithin(SLICE_BYTES, false, first)} AS last
          FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', ...inputs, after: 'bigint' })})
        SELECT i.ord, i.last, (SELECT sum(${bytes}) ${upToLast}) AS bytes,
          (SELECT string_agg(x.line, '\n' ORDER BY x.position)
            FROM (SELECT ${id} AS position, ${line} AS line ${upToLast}) AS x) AS lines
        FROM i`
    }
  }
}

interface TableSlices { table: StoredTable, live: SliceQuery, copied: SliceQuery }

/** By table, parents before children. */
const SLICES: TableSlices[] = STORED_TABLES.map((table) => ({
  table,
  live: sliceQuery((dialect) => {
    const id = `r.${table.id}`
    const { where, orderBy } = dialect.keyset([['r.account_id', 'i.account']], id, 'i.after', false)
    return {
      rows: `FROM ${table.name} r WHERE ${where}`,
      orderBy,
      id,
      bytes: textBytes(table),
      json: rowAsJson(dialect, table.columns)
    }
  }, {}),
  copied: sliceQuery(() => ({
    rows: `FROM snapshot_rows r WHERE r.account_id = i.account AND r.snapshot_id = i.snapshot
      AND r.kind = '${table.name}' AND r.row_id > i.after`,
    orderBy: 'r.row_id',
    id: 'r.row_id',
    bytes: 'octet_length(r.data)',
    json: 'r.data'
  }), { snapshot: 'bigint' })
}))

/** Reads the rows of a store by table and id, a slice at a time. @throws StoreTooLarge */
export async function * rowsOfStore (read: Read, account: number): AsyncGenerator<StoredRow, void> {
  let count = 0
  let size = 0
  for (const { table, live } of SLICES) {
    for await (const { rows, bytes } of slicesOf(read, live, table, { account, after: 0 })) {
      count += rows.length
      size += bytes
      if (count > MAX_STORE_ROWS || size > MAX_STORE_BYTES) throw new StoreTooLarge(STORE_LIMIT)
      yield * rows
    }
  }
}

/** Reads the rows of a snapshot in the same order. */
export async function * rowsOfSnapshot (
  read: Read, account: number, snapshot: number
): AsyncGenerator<StoredRow, void> {
  for (const { table, copied } of SLICES) {
    for await (const { rows } of slicesOf(read, copied, table, { account, snapshot, after: 0 })) yield * rows
  }
}

async function * slicesOf (
  read: Read, query: SliceQuery, table: StoredTable, input: SliceInput
): AsyncGenerator<{ rows: StoredRow[], bytes: number }, void> {
  let { after } = input
  for (;;) {
    const slice = await read(query, { ...input, after })
    if (slice === undefined || slice.lines === null) return
    const rows = slice.lines.split('\n').map((line) => ({ table, ...JSON.parse(line) as Omit<StoredRow, 'table'> }))
    yield { rows, bytes: Number(slice.bytes) }
    after = Number(slice.last)
  }
}
