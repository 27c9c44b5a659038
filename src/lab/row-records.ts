import type { StoredRow } from './row-slices.ts'
import type { StoredTable, StoreRow } from './stored-tables.ts'

export interface VersionedRecord {
  row: StoreRow
  table: StoredTable
  /** The id within the table. */
  id: number
  version: number
}

/** Turns stored rows into records. Pets come before the inventory, whose status is theirs. */
export async function * recordsOf (rows: AsyncIterable<StoredRow>): AsyncGenerator<VersionedRecord, void> {
  const statusOf = new Map<number, unknown>()
  for await (const { table, id, columns } of rows) {
    const row = recordOf(table, id, columns)
    if (row['type'] === 'pet') statusOf.set(id, row['status'])
    if (row['type'] === 'inventory') row['status'] = statusOf.get(id)
    yield { row: row as StoreRow, table, id, version: columns['version'] as number }
  }
}

/** Returns the columns of a row as its record, with the members in the order of the API. */
function recordOf (
  { type, schema: { properties }, table }: StoredTable, id: number, columns: StoredRow['columns']
): Record<string, unknown> {
  const record: Record<string, unknown> = { type }
  for (const member of Object.keys(properties)) {
    const column = table.columns[member]
    const value = member === table.id ? id : column && columns[column.name]
    if (value !== undefined) record[member] = value
  }
  return record
}
