import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import type { Command, CommandResult } from '../database/group-commit/command.ts'
import type { Dialect } from '../database/dialect.ts'
import { enumText, integer, jsonObject, type SerializedRecord } from '../database/sql/json-object.ts'
import { pageQuery, type ListDefinition, type Page, type PageRequest } from '../database/sql/keyset-pagination.ts'
import type { Query, Read } from '../database/read-batching.ts'
import { PetNotFound } from '../errors.ts'
import { setStock } from '../pets/rules.ts'
import { loadTrackedPets, petUpdated, type TrackedPet } from '../pets/commands.ts'
import type { InventoryItem } from './schemas.ts'

const record = (dialect: Dialect): string => jsonObject(dialect, {
  petId: integer('s.pet_id'),
  quantity: integer('s.quantity'),
  status: enumText('p.status')
})

/** A row also for a pet that was never counted: without a record. */
const itemByPet: Query<{ account: number, id: number }, { version: bigint | null, status: string, record: string | null }> = {
  sql: (dialect) => `
    SELECT i.ord, s.version, ${dialect.fromEnum('p.status')} AS status, ${record(dialect)} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: 'bigint' })}
    JOIN pets p ON p.id = i.id AND p.account_id = i.account
    LEFT JOIN inventory_items s ON s.pet_id = p.id`
}

export const inventory: ListDefinition = {
  name: 'inventory',
  from: 'inventory_items s JOIN pets p ON p.id = s.pet_id',
  record,
  filters: {
    status: { type: 'text', column: 'p.status', enum: 'pet_status' },
    petId: { type: 'json', column: 's.pet_id' }
  },
  indexes: [
    { name: 'inventory_items_account_id_pet_id_idx', columns: ['s.account_id'], position: 's.pet_id' },
    { name: 'pets_account_id_status_id_idx', columns: ['p.account_id', 'p.status'], position: 'p.id' }
  ]
}

/** @returns `undefined` for an unknown pet, `null` for one that was never counted */
export async function findInventoryItem (read: Read, account: number, petId: number): Promise<SerializedRecord | null | undefined> {
  const row = await read(itemByPet, { account, id: petId })
  if (row === undefined) return undefined
  return row.record === null ? null : { record: row.record, etag: inventoryEtag({ stockVersion: Number(row.version), status: row.status }) }
}

export async function listInventory (read: Read, account: number, page: PageRequest): Promise<Page> {
  return await read(...pageQuery(inventory, page, account)) as Page
}

export interface Count { account: number, petId: number, quantity: number, conditions: Conditions }

export const updateInventory: Command<Count, InventoryItem> = {
  name: 'updateInventory',
  rows: ({ petId }) => ({ pets: [petId] }),
  async run (tx, inputs) {
    const loaded = await loadTrackedPets(tx, inputs.map(({ account, petId }) => ({ account, id: petId })))
    const outcomes = inputs.map(({ account, petId, quantity, conditions }): CommandResult<InventoryItem> => {
      const pet = loaded.get(account, petId)
      if (pet === undefined) return new PetNotFound()
      const refused = checkPreconditions(conditions, pet.quantity === undefined ? undefined : inventoryEtag(pet))
      if (refused !== undefined) return refused
      const { quantity: previous, stockVersion } = pet
      const moved = loaded.move(pet, setStock(pet, quantity))
      const inventory = inventoryRecord(pet)
      const etag = inventoryEtag(pet)
      if (!moved && pet.stockVersion === stockVersion) return { record: inventory, etag }
      const counted = { type: 'inventory.counted', data: { inventory, previousQuantity: previous ?? 0 } }
      return { record: inventory, etag, events: moved ? [counted, petUpdated(pet)] : [counted] }
    })
    loaded.save()
    return outcomes
  }
}

/** Of the count and the status, which is the pet's and may move without a count. */
function inventoryEtag ({ stockVersion, status }: { stockVersion: number, status: string }): string {
  return `"${stockVersion}-${status}"`
}

export function inventoryRecord ({ id, quantity = 0, status }: TrackedPet): InventoryItem {
  return { petId: id, quantity, status }
}
