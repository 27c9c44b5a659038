import { children, forUpdate, type Write } from '../database/unit-of-work/write.ts'
import { inventoryItems, orders, pets } from '../generated/tables.ts'
import { requirePreconditions, type Conditions } from '../http/conditional-requests.ts'
import { PetNotFound } from '../pets/errors.ts'
import { setStock } from '../pets/rules.ts'
import type { InventoryItem } from '../pets/schemas.ts'
import { applyStock, inventoryRecord, petUpdated, stockOf } from '../pets/stock.ts'
import { inventoryEtag } from './queries.ts'
import { inventoryEvents } from './schemas.ts'

export interface Count { petId: number, quantity: number, conditions: Conditions }

export const updateInventory: Write<Count, InventoryItem> = {
  name: 'updateInventory',
  needs: ({ petId }) => [
    forUpdate(pets, petId),
    forUpdate(inventoryItems, petId),
    children(orders, { petId, complete: false })
  ],
  decide ({ petId, quantity, conditions }, rows) {
    const pet = rows.get(pets, petId)
    if (pet === undefined) throw new PetNotFound()
    const item = rows.get(inventoryItems, petId)
    requirePreconditions(conditions, item && inventoryEtag(item.version, pet.status))
    const open = rows.has(orders, { petId, complete: false }) ? 1 : 0
    const statusChanged = applyStock(rows, pet, setStock(stockOf(rows, pet, open), quantity))
    const counted = rows.get(inventoryItems, petId)!
    const { status } = rows.get(pets, petId)!
    const inventory = inventoryRecord({ ...pet, status }, counted)
    const etag = inventoryEtag(counted.version, status)
    if (!statusChanged && counted === item) return { record: inventory, etag }
    const event = inventoryEvents.counted({ inventory, previousQuantity: item?.quantity ?? 0 })
    return { record: inventory, etag, events: statusChanged ? [event, petUpdated(rows, petId)] : [event] }
  }
}
