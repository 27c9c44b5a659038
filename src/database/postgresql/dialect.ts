import { keyset as sharedKeyset, type Dialect, type Keyset } from '../dialect.ts'

/**
 * The planner takes any index in the order of the position and filters, if it believes the values to be common. In the
 * order of the last value and the position, rows come from one index only. The upper bound is one column, because
 * PostgreSQL 15 does not end the walk of an index at a bound of several.
 */
const keyset: Keyset = (columns, position, after, descending) => {
  const last = columns.at(-1)
  if (last === undefined) return sharedKeyset(columns, position, after, descending)
  const [column, value] = last
  const [onwards, within, order] = descending ? ['<', '>=', 'DESC'] : ['>', '<=', 'ASC']
  const others = columns.slice(0, -1).map(([column, value]) => `${column} = ${value}`)
  return {
    where: [
      ...others, `(${column}, ${position}) ${onwards} (${value}, ${after})`, `${column} ${within} ${value}`
    ].join(' AND '),
    orderBy: `${column} ${order}, ${position} ${order}`
  }
}

export const postgresql: Dialect = {
  name: 'postgresql',
  jsonRows: (alias, { ord, ...columns }, parameter = 1) => {
    const members = Object.keys(columns)
    const array = `$${parameter}::json`
    const typed = members.map((name) => `"${name}" ${columns[name]}`).join(', ')
    if (ord === undefined) return `json_to_recordset(${array}) AS ${alias}(${typed})`
    if (members.length === 0) return `json_array_elements(${array}) WITH ORDINALITY AS ${alias}(value, "ord")`
    const all = [...members, 'ord'].map((name) => `"${name}"`).join(', ')
    return `ROWS FROM (json_to_recordset(${array}) AS (${typed})) WITH ORDINALITY AS ${alias}(${all})`
  },
  quote: (text) => `to_json(${text})::text`,
  time: (column) => `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
  // The text is UTC already, so the zone in it changes nothing.
  toTime: (text) => `CAST(${text} AS timestamp)`,
  later: (text, seconds) =>
    `LEAST(CAST(${text} AS timestamp) + ${seconds} * INTERVAL '1 second', TIMESTAMP '9999-12-31 23:59:59.999')`,
  toEnum: (text, type) => `CAST(${text} AS ${type})`,
  keyset,
  useIndex: (from) => from,
  // Unlike =, this comparison never uses an index.
  equalsWithoutIndex: (column, value) => `${column} IS NOT DISTINCT FROM ${value}`,
  limit: (input) => `${input}."limit"`,
  inJsonArray: (column, array) =>
    `${column} = ANY (ARRAY(SELECT CAST(value AS bigint) FROM json_array_elements_text(${array}) AS value))`,
  // As a join, a planner that estimates many values would read the whole table.
  inSubquery: (column, subquery) => `${column} = ANY (ARRAY(${subquery}))`,
  rowAddress: 'ctid',
  fromByIds: (table, alias, column, ids) => `FROM ${table} ${alias} WHERE ${alias}.${column} = ANY (ARRAY(${ids}))`,
  jsonMember: (object, name) => `CAST(${object} AS json) ->> '${name}'`,
  isServer: true,
  locking: (clause) => clause,
  // A sequence never returns a number again.
  keepIds: () => [],
  // To find the ranges takes longer than to send the ids.
  newIds: (table, column) => `
    SELECT n.id AS first, n.id AS last
    FROM (SELECT nextval('${table}_${column}_seq') AS id FROM generate_series(1, CAST($1 AS integer))) AS n`
}
