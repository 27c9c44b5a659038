import { nextVersion, recordOf } from '../database/record.ts'
import type { NewEvent } from '../database/unit-of-work/success.ts'
import type { AccountRows } from '../database/unit-of-work/account-rows.ts'
import { inventoryItems, pets, type InventoryItemRow, type PetRow } from '../generated/tables.ts'
import { petEvents } from './events.ts'
import type { Stock } from './rules.ts'
import { PetSchema, type InventoryItem, type Pet } from './schemas.ts'

type LoadedPet = Readonly<PetRow>

/** What the rules need to know of a pet. @param open the number of its open orders, or 1 if there are any */
export function stockOf (rows: AccountRows, { id, status }: LoadedPet, open: number): Stock {
  return { status, quantity: rows.get(inventoryItems, id)?.quantity, open }
}

/** Stores the result of the rules. Returns whether the status has changed, which is a change of the pet. */
export function applyStock (rows: AccountRows, pet: LoadedPet, { status, quantity }: Stock): boolean {
  const item = rows.get(inventoryItems, pet.id)
  if (item !== undefined && quantity !== undefined) rows.update(inventoryItems, item, { quantity })
  else if (quantity !== undefined) {
    // A restore may have removed an earlier count.
    rows.insert(inventoryItems, { petId: pet.id, quantity, version: nextVersion(0, pet.versionFloor) })
  }
  return rows.update(pets, pet, { status }) !== pet
}

export function petRecord (pet: LoadedPet): Pet {
  return recordOf(PetSchema, pet) as Pet
}

/** The inventory entry of a pet, which shows the pet's status. */
export function inventoryRecord (
  { id, status }: LoadedPet, item: Readonly<InventoryItemRow> | undefined
): InventoryItem {
  return { petId: id, quantity: item?.quantity ?? 0, status }
}

/** Returns the event of a pet that was changed, as it is now. */
export function petUpdated (rows: AccountRows, id: number): NewEvent {
  const pet = rows.get(pets, id)!
  const item = rows.get(inventoryItems, id)
  const inventory = item === undefined ? {} : { inventory: inventoryRecord(pet, item) }
  return petEvents.updated({ pet: petRecord(pet), ...inventory })
}
