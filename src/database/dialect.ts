/**
 * What the two databases say differently. Statements are written once, with these few words filled
 * in; no statement outside this folder says which database it is for.
 */
export interface Dialect {
  readonly name: DatabaseName
  /**
   * A FROM item: a parameter of the statement, a JSON array of objects, as rows of typed columns. Only PostgreSQL
   * asks which parameter it is, the first by default; SQLite takes them in the order in which they stand there.
   */
  jsonRows: (alias: string, columns: Record<string, InputType>, parameter?: number) => string
  /** A text as a JSON string, quoted and escaped. */
  quote: (text: string) => string
  /** A stored instant as RFC 3339 in UTC with milliseconds. */
  time: (column: string) => string
  /** An RFC 3339 text (or NULL) as what a date-time column stores. */
  toTime: (text: string) => string
  /** A text as a value of a PostgreSQL enum; SQLite keeps the text. */
  toEnum: (text: string, type: string) => string
  /** An enum as its text. */
  fromEnum: (column: string) => string
  /**
   * Walks an index: the rows whose columns have the values given, on from a position, in its order. A
   * planner that guesses wrong would walk the whole table by its key and filter.
   */
  keysetByIndex: Keyset
  /** The same rows, where the planner may choose. */
  keyset: Keyset
  /** Whether a column is one of the numbers in a JSON array (an input of type `json`). */
  inJsonArray: (column: string, array: string) => string
  /** Whether a column is one of a subquery's few values, each looked up in the column's index. */
  inSubquery: (column: string, subquery: string) => string
  /** Texts in one, in the order given, with commas between them or what `separator` says. */
  join: (text: string, orderBy: string, separator?: string) => string
  /** Row locks until the end of the transaction; SQLite's one writer needs none. */
  forUpdate: string
  forKeyShare: string
  /** As `forUpdate`, leaving out rows that another transaction has locked. */
  forUpdateSkipLocked: string
  /** Whether a statement may hold others that write (data-modifying WITH): one round trip for several. */
  supportsWritableCtes: boolean
  /** New ids of a table, as many as `input` says in its one row: as ranges without a gap, in rows `first` and `last`. Only inside a commit. */
  allocateIds: (table: string, column: string, input: string) => string
}

export type Keyset = (columns: Array<[column: string, value: string]>, position: string, after: string, descending: boolean) => { where: string, orderBy: string }

export type DatabaseName = 'sqlite' | 'postgresql'
/** `ordinality` is no member of the objects: it counts them, from 1. */
export type InputType = 'bigint' | 'text' | 'boolean' | 'json' | 'ordinality'

/** Which database a `DATABASE_URL` names. */
export function databaseOf (url: string): DatabaseName {
  return url.startsWith('file:') ? 'sqlite' : 'postgresql'
}

const keyset: Keyset = (columns, position, after, descending) => ({
  where: [...columns.map(([column, value]) => `${column} = ${value}`), `${position} ${descending ? '<' : '>'} ${after}`].join(' AND '),
  orderBy: `${position} ${descending ? 'DESC' : 'ASC'}`
})

/**
 * PostgreSQL takes any index in the order of the position and filters, when it believes the values to be
 * common. As a comparison of rows, in the order of whole rows, only the right index can serve.
 */
const rowKeyset: Keyset = (columns, position, after, descending) => {
  const names = columns.map(([column]) => column)
  const values = columns.map(([, value]) => value)
  const [onwards, within, order] = descending ? ['<', '>=', 'DESC'] : ['>', '<=', 'ASC']
  return {
    where: `(${[...names, position].join(', ')}) ${onwards} (${[...values, after].join(', ')}) AND (${names.join(', ')}) ${within} (${values.join(', ')})`,
    orderBy: [...names, position].map((column) => `${column} ${order}`).join(', ')
  }
}

const sqlite: Dialect = {
  name: 'sqlite',
  jsonRows: (alias, columns) =>
    `(SELECT ${Object.entries(columns).map(([name, type]) => `${type === 'ordinality' ? 'key + 1' : `value ->> '${name}'`} AS "${name}"`).join(', ')} FROM jsonb_each(?)) AS ${alias}`,
  quote: (text) => `json_quote(${text})`,
  // Prisma writes 2026-11-21T10:00:00.000+00:00; we write and answer Z.
  time: (column) => `substr(${column}, 1, 23) || 'Z'`,
  toTime: (text) => text,
  toEnum: (text) => text,
  fromEnum: (column) => column,
  keysetByIndex: keyset,
  keyset,
  inJsonArray: (column, array) => `${column} IN (SELECT value FROM json_each(${array}))`,
  inSubquery: (column, subquery) => `${column} IN (${subquery})`,
  join: (text, orderBy, separator = ',') => `group_concat(${text}, '${separator}' ORDER BY ${orderBy})`,
  forUpdate: '',
  forKeyShare: '',
  forUpdateSkipLocked: '',
  supportsWritableCtes: false,
  // The one writer may count on by itself.
  allocateIds: (table, _column, input) =>
    `SELECT s.seq + 1 AS first, s.seq + i.count AS last FROM (SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = '${table}'), 0) AS seq) AS s, ${input}`
}

const postgresql: Dialect = {
  name: 'postgresql',
  jsonRows: (alias, columns, parameter = 1) => {
    const names = Object.keys(columns)
    const members = names.filter((name) => columns[name] !== 'ordinality')
    const array = `$${parameter}::json`
    const typed = members.map((name) => `"${name}" ${columns[name]}`).join(', ')
    if (members.length === names.length) return `json_to_recordset(${array}) AS ${alias}(${typed})`
    const ordinality = names.find((name) => columns[name] === 'ordinality')
    return members.length === 0
      ? `json_array_elements(${array}) WITH ORDINALITY AS ${alias}(value, "${ordinality}")`
      : `ROWS FROM (json_to_recordset(${array}) AS (${typed})) WITH ORDINALITY AS ${alias}(${[...members, ordinality].map((name) => `"${name}"`).join(', ')})`
  },
  quote: (text) => `to_json(${text})::text`,
  time: (column) => `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
  // The text is UTC already, so the zone it names changes nothing.
  toTime: (text) => `CAST(${text} AS timestamp)`,
  toEnum: (text, type) => `CAST(${text} AS ${type})`,
  fromEnum: (column) => `${column}::text`,
  keysetByIndex: rowKeyset,
  keyset,
  inJsonArray: (column, array) => `${column} = ANY (ARRAY(SELECT CAST(value AS bigint) FROM json_array_elements_text(${array}) AS value))`,
  // As a join, a planner that believes in many values would read the whole table.
  inSubquery: (column, subquery) => `${column} = ANY (ARRAY(${subquery}))`,
  join: (text, orderBy, separator = ',') => `string_agg(${text}, '${separator}' ORDER BY ${orderBy})`,
  forUpdate: 'FOR UPDATE',
  forKeyShare: 'FOR KEY SHARE',
  forUpdateSkipLocked: 'FOR UPDATE SKIP LOCKED',
  supportsWritableCtes: true,
  // Another process may take some at the same time: then there are several ranges.
  allocateIds: (table, column, input) => `
    SELECT min(id) AS first, max(id) AS last FROM (
      SELECT id, id - row_number() OVER (ORDER BY id) AS gap
      FROM (SELECT nextval('${table}_${column}_seq') AS id FROM ${input}, generate_series(1, i.count)) AS taken) AS numbered
    GROUP BY gap`
}

export const dialects: Record<DatabaseName, Dialect> = { sqlite, postgresql }
