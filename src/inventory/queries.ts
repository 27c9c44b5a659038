import type { Dialect } from '../database/dialect.ts'
import type { Query, Read } from '../database/reads/query.ts'
import { enumText, integer, jsonObject, type SerializedRecord } from '../database/sql/json-object.ts'
import type { ListDefinition } from '../database/sql/keyset-pagination.ts'
import { listRecords } from '../database/sql/record-queries.ts'

const record = (dialect: Dialect): string => jsonObject(dialect, {
  petId: integer('s.pet_id'),
  quantity: integer('s.quantity'),
  status: enumText('p.status')
})

interface ItemRow { version: bigint | null, status: string, record: string | null }

/** Returns a row also for a pet that has never been counted: without a record. */
const itemByPet: Query<{ account: number, id: number }, ItemRow> = {
  sql: (dialect) => `
    SELECT i.ord, s.version, CAST(p.status AS text) AS status, ${record(dialect)} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: 'bigint' })}
    JOIN pets p ON p.id = i.id AND p.account_id = i.account
    LEFT JOIN inventory_items s ON s.pet_id = p.id`
}

export const inventoryList: ListDefinition = {
  name: 'inventory',
  from: 'inventory_items s JOIN pets p ON p.id = s.pet_id',
  record,
  filters: {
    status: { type: 'text', column: 'p.status', enum: 'pet_status' },
    petId: { type: 'json', column: 's.pet_id' }
  },
  indexes: [
    { name: 'inventory_items_account_id_pet_id_idx', columns: ['s.account_id'], position: 's.pet_id' },
    { name: 'pets_counted_idx', where: 'p.counted', columns: ['p.account_id', 'p.status'], position: 'p.id' }
  ]
}

/** Returns `undefined` for an unknown pet, `null` for one that has never been counted. */
export async function findInventoryItem (
  read: Read, account: number, petId: number
): Promise<SerializedRecord | null | undefined> {
  const row = await read(itemByPet, { account, id: petId })
  if (row === undefined || row.record === null) return row === undefined ? undefined : null
  return { record: row.record, etag: inventoryEtag(Number(row.version), row.status) }
}

export const listInventory = listRecords(inventoryList)

/** Combines the count's version and the status, which is the pet's and may change without a count. */
export function inventoryEtag (version: number, status: string): string {
  return `"${version}-${status}"`
}
