import type { Dialect } from '../dialect.ts'
import type { Table } from '../table.ts'
import type { OwnStatement } from '../statements.ts'
import type { IdentityMap, Row } from './account-rows.ts'
import { deleteSql, insertSql, updateSql } from './row-statements.ts'

/**
 * Returns the statements that write what the group has changed: for each table one that inserts, one that updates and
 * one that deletes. Parents are inserted first and deleted last.
 *
 * @param tables parents first
 */
export function savesOf (dialect: Dialect, tables: readonly Table[], map: IdentityMap): OwnStatement[] {
  const ordered = [...map.tables].sort(([a], [b]) => tables.indexOf(a) - tables.indexOf(b))
  const inserts: OwnStatement[] = []
  const deletes: OwnStatement[] = []
  for (const [table, entries] of ordered) {
    const inserted: Row[] = []
    const updated: Row[] = []
    const deleted: Row[] = []
    for (const [id, { stored, current }] of entries) {
      if (stored === current) continue
      if (current === undefined) deleted.push({ id })
      else if (stored === undefined) inserted.push(current)
      else updated.push(current)
    }
    if (inserted.length > 0) inserts.push(insertOf(dialect, table, inserted))
    if (updated.length > 0) inserts.push(statementOf(updateSql(dialect, table), updated))
    if (deleted.length > 0) deletes.unshift(statementOf(deleteSql(dialect, table), deleted))
  }
  return [...inserts, ...deletes]
}

/** Returns the statement that inserts rows. It sends the fields of which a row has another value than the default. */
function insertOf (dialect: Dialect, table: Table, rows: readonly Row[]): OwnStatement {
  const fields = Object.keys(table.columns).filter((field) => {
    const { default: known = null } = table.columns[field]!
    return rows.some((row) => row[field] !== known)
  })
  return { sql: insertSql(dialect, table, fields), values: [JSON.stringify(rows, fields)] }
}

function statementOf (sql: string, rows: Row[]): OwnStatement {
  return { sql, values: [JSON.stringify(rows)] }
}

/** Returns how many rows a group creates in each table at most, in one order for all groups. */
export function createdBy (writes: ReadonlyArray<{ creates?: readonly Table[] }>): Map<Table, number> {
  const counts = new Map<Table, number>()
  for (const { creates = [] } of writes) for (const table of creates) counts.set(table, (counts.get(table) ?? 0) + 1)
  return counts
}
