import type { Command, CommandResult } from '../database/group-commit/command.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { PetNotFound } from '../pets/errors.ts'
import { petTable } from '../pets/queries.ts'
import { setStock } from '../pets/rules.ts'
import { inventoryRecord, loadTrackedPets, petUpdated, prefetchTrackedPets } from '../pets/tracked-pets.ts'
import { inventoryEtag } from './queries.ts'
import type { InventoryItem } from '../pets/schemas.ts'
import { inventoryEvents } from './schemas.ts'

export interface Count { account: number, petId: number, quantity: number, conditions: Conditions }

export const updateInventory: Command<Count, InventoryItem> = {
  name: 'updateInventory',
  locks: ({ petId }) => [{ table: petTable, ids: [petId], mode: 'update' }],
  prefetch: (tx, inputs) => { prefetchTrackedPets(tx, inputs.map(({ account, petId }) => ({ account, id: petId }))) },
  async run (tx, inputs) {
    const pets = await loadTrackedPets(tx, inputs.map(({ account, petId }) => ({ account, id: petId })))
    const results = inputs.map(({ account, petId, quantity, conditions }): CommandResult<InventoryItem> => {
      const pet = pets.get(account, petId)
      if (pet === undefined) return new PetNotFound()
      const failed = checkPreconditions(conditions, pet.quantity === undefined ? undefined : inventoryEtag(pet))
      if (failed !== undefined) return failed
      const { quantity: previousQuantity = 0, stockVersion } = pet
      const statusChanged = pets.applyStock(pet, setStock(pet, quantity))
      const inventory = inventoryRecord(pet)
      const etag = inventoryEtag(pet)
      if (!statusChanged && pet.stockVersion === stockVersion) return { record: inventory, etag }
      const counted = inventoryEvents.counted({ inventory, previousQuantity })
      return { record: inventory, etag, events: statusChanged ? [counted, petUpdated(pet)] : [counted] }
    })
    pets.save()
    return results
  }
}
