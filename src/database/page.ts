import type { Dialect, InputType } from './dialect.ts'
import type { Query } from './read.ts'

/** A resource's list as the database sees it. */
export interface Listing {
  name: string
  /** The tables, such as `pets p`. */
  from: string
  /** The column the list goes by, unique and never changed. */
  position: string
  /** The column that says whose row it is. */
  account: string
  /** The record's JSON text. */
  record: (dialect: Dialect) => string
  filters: Record<string, Filter>
}

export interface Filter {
  type: InputType
  /** A condition on `i.<name of the filter>`. */
  where: (dialect: Dialect) => string
}

/** What a client asked for. */
export interface PageRequest {
  limit: number
  descending: boolean
  /** The last position of the page before, if any. */
  after: number | undefined
  filters: Record<string, unknown>
}

export interface Page {
  /** The records' JSON texts, joined by commas; `null` when there are none. */
  records: string | null
  /** The last position of this page when there is more after it. */
  next: bigint | number | null
}

const queries = new Map<string, Query<object, Page>>()

/**
 * The statement for one shape of a list (its filters, order and length), and its input. Each shape has
 * its own text, so that the database can walk the index that fits; calls of one shape share a statement.
 */
export function pageQuery (listing: Listing, { limit, descending, after, filters }: PageRequest, account: number): [Query<object, Page>, object] {
  const used = Object.keys(filters).filter((name) => filters[name] !== undefined)
  const shape = `${listing.name} ${used.join(',')} ${descending ? 'down' : 'up'} ${limit}`
  let query = queries.get(shape)
  if (query === undefined) {
    query = { name: shape, sql: (dialect) => pageSql(dialect, listing, used, descending, limit) }
    queries.set(shape, query)
  }
  return [query, { account, after: after ?? (descending ? Number.MAX_SAFE_INTEGER : 0), ...filters }]
}

function pageSql (dialect: Dialect, listing: Listing, used: string[], descending: boolean, limit: number): string {
  const { from, position, account, record, filters } = listing
  const order = descending ? 'DESC' : 'ASC'
  const columns: Record<string, InputType> = { ord: 'bigint', account: 'bigint', after: 'bigint' }
  for (const name of used) columns[name] = filters[name]!.type
  const rows = `
    FROM ${from}
    WHERE ${account} = i.account AND ${position} ${descending ? '<' : '>'} i.after
      ${used.map((name) => `AND ${filters[name]!.where(dialect)}`).join(' ')}
    ORDER BY ${position} ${order}`
  return `
    SELECT i.ord,
      (SELECT ${dialect.join('x.json', `x.position ${order}`)}
        FROM (SELECT ${position} AS position, ${record(dialect)} AS json ${rows} LIMIT ${limit}) AS x) AS records,
      (SELECT CASE WHEN count(*) = 2 THEN ${descending ? 'max' : 'min'}(y.position) END
        FROM (SELECT ${position} AS position ${rows} LIMIT 2 OFFSET ${limit - 1}) AS y) AS next
    FROM ${dialect.inputs('i', columns)}`
}
