import type { Dialect, InputType } from '../dialect.ts'
import type { Query } from '../read-batching.ts'

/** The list of a resource in the database. Columns have the alias of `from`, such as `p.status`. */
export interface ListDefinition {
  name: string
  /** The tables, such as `pets p`. */
  from: string
  /** The record's JSON text. */
  record: (dialect: Dialect) => string
  filters: Record<string, Filter>
  /** The indexes of the list. A query walks the one with the most columns that the filters allow. */
  indexes: Index[]
}

export interface Filter {
  /** `json` is an array of ids. Any other type is one value that the column must equal. */
  type: InputType
  column: string
  /** The name of the column's type on PostgreSQL, if it is an enum. */
  enum?: string
}

export interface Index {
  name: string
  /** The columns before the position: the account and filters. */
  columns: string[]
  /** The column that orders the list. It is unique and never changes. */
  position: string
}

/** The page that a client requests. */
export interface PageRequest {
  limit: number
  descending: boolean
  /** The last position of the page before, if any. */
  after: number | undefined
  filters: Record<string, unknown>
}

export interface Page {
  /** The records, as the JSON text of an array. */
  records: string
  /** The last position of this page if more records follow, otherwise null. */
  next: bigint | number | null
}

const queries = new Map<string, Query<object, Page>>()

/**
 * Returns the query for one shape of a list (its filters, order and length), and its input. Each shape has its own
 * text, so that the database can walk the matching index. Calls of one shape share a statement.
 */
export function pageQuery (
  listing: ListDefinition, { limit, descending, after, filters }: PageRequest, account: number
): [Query<object, Page>, object] {
  const used = Object.keys(filters).filter((name) => filters[name] !== undefined).sort()
  const shape = `${listing.name} ${used.join(',')} ${descending ? 'down' : 'up'} ${limit}`
  let query = queries.get(shape)
  if (query === undefined) {
    query = { sql: (dialect) => pageSql(dialect, listing, used, descending, limit) }
    queries.set(shape, query)
  }
  return [query, { account, after: after ?? (descending ? Number.MAX_SAFE_INTEGER : 0), ...filters }]
}

/** Returns the index that a list with these filters walks. */
export function indexOf ({ filters, indexes }: ListDefinition, used: string[]): Index {
  const known = new Set(used.filter((name) => filters[name]!.type !== 'json').map((name) => filters[name]!.column))
  const [longest] = indexes
    .filter(({ columns }) => columns.every((column) => isAccount(column) || known.has(column)))
    .sort((a, b) => b.columns.length - a.columns.length)
  return longest!
}

function isAccount (column: string): boolean {
  return column.endsWith('.account_id')
}

function pageSql (
  dialect: Dialect, listing: ListDefinition, used: string[], descending: boolean, limit: number
): string {
  const { from, record, filters } = listing
  const { columns, position } = indexOf(listing, used)
  const inputs: Record<string, InputType> = { ord: 'ordinality', account: 'bigint', after: 'bigint' }
  const values = new Map<string, string>()
  const among: string[] = []
  for (const name of used) {
    const { type, column, enum: enumType } = filters[name]!
    const value = `i."${name}"`
    inputs[name] = type
    if (type === 'json') among.push(dialect.inJsonArray(column, value))
    else values.set(column, enumType === undefined ? value : dialect.toEnum(value, enumType))
  }
  const prefix = columns.map((column): [string, string] =>
    [column, isAccount(column) ? 'i.account' : values.get(column)!])
  for (const column of columns) values.delete(column)
  const others = [...[...values].map(([column, value]) => `${column} = ${value}`), ...among]
  // The database looks up a list of ids instead of walking an index.
  const paginate = among.length > 0 ? dialect.keyset : dialect.keysetByIndex
  const { where, orderBy } = paginate(prefix, position, 'i.after', descending)
  const rows = `FROM ${from} WHERE ${[where, ...others].join(' AND ')} ORDER BY ${orderBy}`
  return `
    SELECT i.ord,
      (SELECT '[' || coalesce(${dialect.join('x.json', `x.position ${descending ? 'DESC' : 'ASC'}`)}, '') || ']'
        FROM (SELECT ${position} AS position, ${record(dialect)} AS json ${rows} LIMIT ${limit}) AS x) AS records,
      (SELECT CASE WHEN count(*) = 2 THEN ${descending ? 'max' : 'min'}(y.position) END
        FROM (SELECT ${position} AS position ${rows} LIMIT 2 OFFSET ${limit - 1}) AS y) AS next
    FROM ${dialect.jsonRows('i', inputs)}`
}
