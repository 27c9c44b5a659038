import type { Dialect } from '../database/dialect.ts'
import { integer, jsonObject, optional } from '../database/sql/json-object.ts'
import { memberOf } from '../database/sql/record-queries.ts'
import type { ColumnType } from '../database/table.ts'
import { bytesSql, ROW_BYTES } from '../database/unit-of-work/stored-bytes.ts'
import { STORED_TABLES, type StoredTable } from './stored-tables.ts'

/** Returns an SQL expression for the size of the texts of a row `r`, in bytes. */
export function textBytes ({ table }: StoredTable): string {
  return `(${bytesSql(table, 'r')} - ${ROW_BYTES})`
}

/** Copies all rows of a store in one statement, which sees one moment. Reads `account` and `snapshot`. */
export function copyRows (dialect: Dialect): string {
  const copies = STORED_TABLES.map(({ name, id, columns }) => `
    SELECT r.account_id, s.snapshot, '${name}', r.${id}, ${rowAsJson(dialect, columns)}
    FROM s JOIN ${name} r ON r.account_id = s.account`)
  return `
    WITH s AS (SELECT i.account, i.snapshot FROM ${dialect.jsonRows('i', { account: 'bigint', snapshot: 'bigint' })})
    INSERT INTO snapshot_rows (account_id, snapshot_id, kind, row_id, data) ${copies.join(' UNION ALL ')}`
}

/** Returns an SQL expression for the columns of a row `r` as a JSON object. */
export function rowAsJson (dialect: Dialect, columns: StoredTable['columns']): string {
  const members = Object.entries(columns).map(([column, type]) => [column, optional(memberOf(type, `r.${column}`))] as const)
  // The first member must not be optional.
  return jsonObject(dialect, { row: integer('1'), ...Object.fromEntries(members) })
}

/** Writes the rows of a snapshot over the rows with the same ids. Reads `account`, `snapshot` and `floor`. */
export function restoreRows (dialect: Dialect, { name, id, columns, computed }: StoredTable): string {
  const names = Object.keys(columns)
  const values = Object.entries(columns).map(([column, type]) =>
    valueOf(dialect, dialect.jsonMember('x.data', column), type))
  const all = [...names, ...Object.keys(computed), 'version_floor']
  return `
    INSERT INTO ${name} (${[id, 'account_id', ...all].join(', ')})
    SELECT ${['x.row_id', 'x.account_id', ...values, ...Object.values(computed), 'i.floor'].join(', ')}
    FROM ${dialect.jsonRows('i', { account: 'bigint', snapshot: 'bigint', floor: 'bigint' })}
    JOIN snapshot_rows x ON x.account_id = i.account AND x.snapshot_id = i.snapshot AND x.kind = '${name}'
    WHERE true
    ON CONFLICT (${id}) DO UPDATE SET ${all.map((column) => `${column} = excluded.${column}`).join(', ')}`
}

function valueOf (dialect: Dialect, text: string, type: ColumnType): string {
  if (typeof type === 'object') return dialect.toEnum(text, type.enum)
  if (type === 'time') return dialect.toTime(text)
  return type === 'text' ? text : `CAST(${text} AS ${type})`
}
