import { keyset, type Dialect } from '../dialect.ts'

export const sqlite: Dialect = {
  name: 'sqlite',
  jsonRows: (alias, columns) => {
    const members = Object.entries(columns)
      .map(([name, type]) => `${type === 'ordinality' ? 'key + 1' : `value ->> '${name}'`} AS "${name}"`)
    return `(SELECT ${members.join(', ')} FROM jsonb_each(?)) AS ${alias}`
  },
  quote: (text) => `json_quote(${text})`,
  // Prisma writes 2026-11-21T10:00:00.000+00:00; responses of the service have Z.
  time: (column) => `substr(${column}, 1, 23) || 'Z'`,
  toTime: (text) => text,
  // SQLite returns NULL after the year 9999.
  later: (text, seconds) => `CASE ${seconds} WHEN 0 THEN ${text} ELSE
    coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', ${text}, ${seconds} || ' seconds'), '9999-12-31T23:59:59.999Z') END`,
  toEnum: (text) => text,
  keyset,
  // After ANALYZE, the planner can prefer an index of fewer columns.
  useIndex: (from, alias, index) => from.replace(new RegExp(`\\b${alias}\\b(?!\\.)`), `${alias} INDEXED BY ${index}`),
  equalsWithoutIndex: (column, value) => `+${column} = ${value}`,
  limit: (_input, limit) => String(limit),
  inJsonArray: (column, array) => `${column} IN (SELECT value FROM json_each(${array}))`,
  inSubquery: (column, subquery) => `${column} IN (${subquery})`,
  rowAddress: 'rowid',
  // CROSS JOIN keeps the order: for each id, its row. IN would write the ids to an intermediate table.
  fromByIds: (table, alias, column, ids) =>
    `FROM (${ids}) AS wanted CROSS JOIN ${table} ${alias} WHERE ${alias}.${column} = wanted.id`,
  jsonMember: (object, name) => `${object} ->> '${name}'`,
  isServer: false,
  locking: () => '',
  // The table has a row in sqlite_sequence once it had one itself. That table has no key.
  keepIds: (table, last) => [
    { sql: `DELETE FROM sqlite_sequence WHERE name = '${table}'`, values: [] },
    { sql: `INSERT INTO sqlite_sequence (name, seq) VALUES ('${table}', ?)`, values: [last] }
  ],
  // Only the single writer allocates ids, so it can continue after the last id.
  newIds: (table) => `
    SELECT s.seq + 1 AS first, s.seq + CAST(? AS integer) AS last
    FROM (SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = '${table}'), 0) AS seq) AS s`
}
