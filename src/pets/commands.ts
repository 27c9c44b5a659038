import { UnknownCategory } from '../categories/errors.ts'
import { etagOf } from '../database/record.ts'
import { children, forReference, forUpdate, type Write } from '../database/unit-of-work/write.ts'
import { categories, inventoryItems, orders, pets } from '../generated/tables.ts'
import { requireRow, type RecordRef } from '../http/record-routes.ts'
import { InvalidStatusTransition, PetInUse, PetNotFound } from './errors.ts'
import { petEvents } from './events.ts'
import { setStatus } from './rules.ts'
import type { NewPet, Pet, PetUpdate } from './schemas.ts'
import { petRecord, petUpdated, stockOf } from './stock.ts'

export const createPet: Write<{ pet: NewPet }, Pet> = {
  name: 'createPet',
  needs: ({ pet }) => [forReference(categories, pet.categoryId)],
  creates: [pets],
  decide (input, rows) {
    if (rows.get(categories, input.pet.categoryId) === undefined) throw new UnknownCategory()
    const pet = petRecord(rows.insert(pets, input.pet))
    return { record: pet, etag: etagOf(1), events: [petEvents.created({ pet })] }
  }
}

type PetRef = RecordRef<'petId'>

export interface PetChange extends PetRef { patch: PetUpdate }

export const updatePet: Write<PetChange, Pet> = {
  name: 'updatePet',
  needs: ({ petId, patch }) => [
    forUpdate(pets, petId),
    forUpdate(inventoryItems, petId),
    ...patch.categoryId === undefined ? [] : [forReference(categories, patch.categoryId)]
  ],
  decide ({ petId, patch, conditions }, rows) {
    const pet = requireRow(rows, pets, petId, PetNotFound, conditions)
    const { categoryId = pet.categoryId, status = pet.status } = patch
    if (categoryId !== pet.categoryId && rows.get(categories, categoryId) === undefined) throw new UnknownCategory()
    if (setStatus(stockOf(rows, pet, 0), status) === undefined) {
      throw new InvalidStatusTransition(pet.status, status, pet.status === 'sold' ? '' : ' while its stock is 0')
    }
    const changed = rows.update(pets, pet, patch)
    const events = changed === pet ? [] : [petUpdated(rows, petId)]
    return { record: petRecord(changed), etag: etagOf(changed.version), events }
  }
}

export const deletePet: Write<PetRef, undefined> = {
  name: 'deletePet',
  needs: ({ petId }) => [
    forUpdate(pets, petId),
    forUpdate(inventoryItems, petId),
    children(orders, { petId, complete: false }),
    children(orders, { petId, complete: true })
  ],
  decide ({ petId, conditions }, rows) {
    const pet = requireRow(rows, pets, petId, PetNotFound, conditions)
    if ([false, true].some((complete) => rows.has(orders, { petId, complete }))) throw new PetInUse()
    const item = rows.get(inventoryItems, petId)
    if (item !== undefined) rows.delete(inventoryItems, item)
    rows.delete(pets, pet)
    return { record: undefined, events: [petEvents.deleted({ pet: petRecord(pet) })] }
  }
}
