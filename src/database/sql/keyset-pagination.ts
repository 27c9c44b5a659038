import type { Dialect, InputType } from '../dialect.ts'
import { queryOfShape } from '../reads/query-shapes.ts'
import type { Query } from '../reads/query.ts'

/** The list of a resource in the database. Columns have the alias of `from`, such as `p.status`. */
export interface ListDefinition {
  name: string
  /** The tables, such as `pets p`. */
  from: string
  /** The record's JSON text. */
  record: (dialect: Dialect) => string
  filters: Record<string, Filter>
  /** The sizes of records, if `limit` of them can exceed the size of a page. */
  recordBytes?: RecordBytes
  /** The indexes of the list. A query walks the one with the most columns that have a value. */
  indexes: Index[]
}

/** Sizes in bytes. The SQL expressions may leave out the short columns. */
export interface RecordBytes {
  /** The size of a stored record, which the database knows without reading the record. */
  stored: string
  /** The size of the JSON text. */
  serialized: (dialect: Dialect) => string
  max: number
}

export interface Filter {
  /** `json` is an array of ids. Any other type is one value that the column must equal, or of the condition. */
  type: InputType
  column: string
  /** Returns the condition that the filter's value gives, if it is another one. */
  condition?: (dialect: Dialect, value: string) => string
  /** The name of the column's type on PostgreSQL, if it is an enum. */
  enum?: string
}

export interface Index {
  name: string
  /** The columns before the position: the account and filters. */
  columns: string[]
  /**
   * All values of the last column, in SQL, if the index also serves the lists that do not filter by it. These read a
   * page of each value.
   */
  last?: readonly string[]
  /** The column that orders the list. It is unique and never changes. */
  position: string
  /** The condition of the rows in the index. All rows of the list must meet it. */
  where?: string
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

/** A page ends with the record that reaches this size, in bytes. */
export const MAX_PAGE_BYTES = 1_048_576

/**
 * Returns the query for one shape of a list (its filters, order and length), and its input. The text depends on the
 * shape, so that the database can walk the matching index. Calls of one shape share a statement.
 */
export function pageQuery (
  listing: ListDefinition, { limit, descending, after, filters }: PageRequest, account: number
): [Query<object, Page>, object] {
  const { recordBytes } = listing
  const used = Object.keys(filters).filter((name) => filters[name] !== undefined).sort()
  const shape = `${listing.name} ${used.join(',')} ${descending ? 'down' : 'up'} ${limit}`
  const query = queryOfShape(shape, (): Query<object, Page> => ({
    sql: (dialect) => pageSql(dialect, listing, used, descending, limit),
    isCostly: true,
    ...recordBytes && { maxRowBytes: Math.min(limit * recordBytes.max, MAX_PAGE_BYTES + recordBytes.max) }
  }))
  return [query, { account, after: after ?? (descending ? Number.MAX_SAFE_INTEGER : 0), limit, ...filters }]
}

/** Returns the index that a list with these filters walks, and the columns whose values the filters give. */
export function indexOf ({ filters, indexes }: ListDefinition, used: string[]): { index: Index, columns: string[] } {
  const known = new Set(used.map((name) => filters[name]!)
    .filter(({ type, condition }) => type !== 'json' && condition === undefined).map(({ column }) => column))
  const isKnown = (column: string): boolean => isAccount(column) || known.has(column)
  const [longest] = indexes
    .map((index) => {
      const { columns, last } = index
      return { index, columns: last === undefined || isKnown(columns.at(-1)!) ? columns : columns.slice(0, -1) }
    })
    .filter(({ columns }) => columns.every(isKnown))
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
  const inputs: Record<string, InputType> = { ord: 'ordinality', account: 'bigint', after: 'bigint', limit: 'bigint' }
  const rows = dialect.limit('i', limit)
  for (const name of used) inputs[name] = filters[name]!.type
  const { position, rowsAfter, positionsAfter } = walk(dialect, listing, used, descending, `${rows} + 1`)
  const order = `position ${descending ? 'DESC' : 'ASC'}`
  const source = `FROM ${dialect.jsonRows('i', inputs)}`
  const records = (source: string): string => `
    (SELECT '[' || coalesce(string_agg(x.json, ',' ORDER BY x.${order}), '') || ']'
      FROM (SELECT ${position} AS position, ${record(dialect)} AS json ${source}) AS x)`
  if (listing.recordBytes === undefined) {
    return `
      SELECT i.ord, ${records(`${rowsAfter('i.after')} LIMIT ${rows}`)} AS records,
        (SELECT CASE WHEN count(*) = 2 THEN ${descending ? 'max' : 'min'}(y.position) END
          FROM (${positionsAfter('i.after')} LIMIT 2 OFFSET ${rows} - 1) AS y) AS next
      ${source}`
  }
  const { stored, serialized } = listing.recordBytes
  const page = `${rowsAfter('i.after')} LIMIT ${rows}`
  // Only the records up to a position are read.
  const rowsUpTo = (last: string): string => `
    FROM (SELECT ${position} AS position ${page}) AS k JOIN ${from} ON ${position} = k.position
    WHERE k.position ${descending ? '>=' : '<='} ${last}`
  const lastStored = lastWithin(MAX_PAGE_BYTES, descending, `SELECT ${position} AS position, ${stored} AS bytes ${page}`)
  const last = lastWithin(MAX_PAGE_BYTES, descending, `
    SELECT k.position, ${serialized(dialect)} AS bytes ${rowsUpTo(lastStored)}`)
  // Materialized, because a database that merges the two queries finds the page's end for each use of it.
  return `
    WITH i AS MATERIALIZED (SELECT i.*, ${last} AS last ${source})
    SELECT i.ord, ${records(rowsUpTo('i.last'))} AS records,
      CASE WHEN EXISTS (SELECT 1 ${rowsAfter('i.last')} LIMIT 1) THEN i.last END AS next
    FROM i`
}

interface Walk {
  position: string
  /** Returns FROM, WHERE and ORDER BY for the rows of the list after a position, at least as many as are needed. */
  rowsAfter: (after: string) => string
  /** Returns the query for the positions of these rows, as `position`. */
  positionsAfter: (after: string) => string
}

/**
 * Returns the walk of the index that serves the filters, or of the ids that a filter lists.
 *
 * @param needed the number of rows that are needed, in SQL
 */
function walk (
  dialect: Dialect, listing: ListDefinition, used: string[], descending: boolean, needed: string
): Walk {
  const { from, filters } = listing
  const idList = used.find((name) => filters[name]!.type === 'json')
  const { index, columns = [] } = idList === undefined ? indexOf(listing, used) : {}
  const position = index?.position ?? filters[idList!]!.column
  // The other conditions, also that on the account if the list is of ids, only filter.
  const values = new Map(columns.length > 0 ? [] : [[listing.indexes[0]!.columns.find(isAccount)!, 'i.account']])
  const conditions: string[] = []
  for (const name of used) {
    const { column, enum: enumType, condition } = filters[name]!
    if (name === idList) continue
    if (condition !== undefined) conditions.push(condition(dialect, `i."${name}"`))
    else values.set(column, enumType === undefined ? `i."${name}"` : dialect.toEnum(`i."${name}"`, enumType))
  }
  const prefix = columns.map((column): [string, string] =>
    [column, isAccount(column) ? 'i.account' : values.get(column)!])
  const others = [...values].filter(([column]) => !columns.includes(column))
    .map(([column, value]) => dialect.equalsWithoutIndex(column, value)).concat(conditions)
  if (idList !== undefined) others.push(dialect.inJsonArray(position, `i."${idList}"`))
  if (index?.where !== undefined) others.push(index.where)
  const rows = index === undefined ? from : dialect.useIndex(from, position.split('.')[0]!, index.name)
  const rowsOf = (prefix: Array<[string, string]>, after: string): string => {
    const { where, orderBy } = dialect.keyset(prefix, position, after, descending)
    return `FROM ${rows} WHERE ${[where, ...others].join(' AND ')} ORDER BY ${orderBy}`
  }
  if (index !== undefined && columns.length < index.columns.length) {
    const last = index.columns.at(-1)!
    // As subqueries: PostgreSQL would estimate that hardly a row follows the highest value, if that is a constant, and
    // then take any index.
    const ranges = index.last!.map((value) => (after: string) => rowsOf([...prefix, [last, `(SELECT ${value})`]], after))
    return mergedWalk(dialect, from, position, descending, needed, ranges)
  }
  return {
    position,
    rowsAfter: (after) => rowsOf(prefix, after),
    positionsAfter: (after) => `SELECT ${position} AS position ${rowsOf(prefix, after)}`
  }
}

/** Returns the walk of several ranges of an index. It looks up the rows of the first positions of all. */
function mergedWalk (
  dialect: Dialect, from: string, position: string, descending: boolean, needed: string,
  ranges: Array<Walk['rowsAfter']>
): Walk {
  const [table, alias] = from.split(' ') as [string, string]
  const order = descending ? 'DESC' : 'ASC'
  const idsAfter = (after: string, name: string): string => {
    const ids = ranges.map((rowsAfter) =>
      `SELECT * FROM (SELECT ${position} AS id ${rowsAfter(after)} LIMIT ${needed}) AS part`)
    return `SELECT merged.id AS ${name} FROM (${ids.join(' UNION ALL ')}) AS merged ORDER BY merged.id ${order}`
  }
  return {
    position,
    rowsAfter (after) {
      const rows = dialect.fromByIds(table, alias, position.split('.')[1]!, `${idsAfter(after, 'id')} LIMIT ${needed}`)
      return `${rows} ORDER BY ${position} ${order}`
    },
    positionsAfter: (after) => idsAfter(after, 'position')
  }
}

/**
 * Returns a subquery for the position of the record with which a page reaches a size, or of the last record. `rows` are
 * the `position` and the `bytes` of the records.
 */
export function lastWithin (maxBytes: number, descending: boolean, rows: string): string {
  return `
    (SELECT ${descending ? 'min' : 'max'}(w.position) FROM (
      SELECT v.position, sum(v.bytes) OVER (ORDER BY v.position ${descending ? 'DESC' : 'ASC'}) - v.bytes AS before
      FROM (${rows}) AS v) AS w
    WHERE w.before < ${maxBytes})`
}
