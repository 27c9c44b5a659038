import { UnknownCategory } from '../categories/errors.ts'
import { categoryTable } from '../categories/queries.ts'
import { etagOf } from '../database/entity-tag.ts'
import type { Command, CommandResult, RowLock } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { jsonMembers } from '../database/sql/json-object.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { InvalidStatusTransition, PetInUse, PetNotFound } from './errors.ts'
import { petEvents } from './events.ts'
import { petTable } from './queries.ts'
import { setStatus } from './rules.ts'
import type { NewPet, Pet, PetUpdate } from './schemas.ts'
import { loadTrackedPets, petRecord, petUpdated, prefetchTrackedPets } from './tracked-pets.ts'

const referTo = (categoryId: number): RowLock => ({ table: categoryTable, ids: [categoryId], mode: 'key share' })
const change = (petId: number): RowLock => ({ table: petTable, ids: [petId], mode: 'update' })

export const createPet: Command<{ account: number, pet: NewPet }, Pet> = {
  name: 'createPet',
  locks: ({ pet }) => [referTo(pet.categoryId)],
  creates: petTable,
  fastPath: {
    inputs: { name: 'text', categoryId: 'bigint', status: 'text', fields: 'text' },
    inputOf: ({ pet: { name, categoryId, status = 'available' } }) => ({
      name, categoryId, status, fields: jsonMembers({ name, categoryId, status })
    }),
    steps: (dialect) => [
      {
        name: 'category',
        find: 'categories',
        id: ['id', '@categoryId'],
        where: 'categories.account_id = @account',
        columns: { id: 'bigint' },
        lock: 'key share'
      },
      {
        name: 'made',
        insert: 'pets',
        values: {
          account_id: '@account',
          name: '@name',
          category_id: '@category.id',
          status: dialect.toEnum('@status', 'pet_status')
        },
        columns: { id: 'bigint' }
      }
    ],
    event: { type: petEvents.created.type, data: '{"pet":{"id":@made.id,@fields}}' },
    resultOf: ({ pet: { name, categoryId, status = 'available' } }, id) =>
      ({ record: { id: Number(id), name, categoryId, status }, etag: etagOf(1) })
  },
  async run (tx, inputs) {
    const ids = await tx.allocateIds(petTable, inputs.length)
    const categories = tx.owners(categoryTable)
    const created: object[] = []
    const results = inputs.map(({ account, pet: { name, categoryId, status = 'available' } }): CommandResult<Pet> => {
      if (categories.get(categoryId) !== account) return new UnknownCategory()
      const pet = { id: ids[created.length]!, name, categoryId, status }
      created.push({ id: pet.id, account_id: account, name, category_id: categoryId, status })
      return { record: pet, etag: etagOf(1), events: [petEvents.created({ pet })] }
    })
    tx.insert(petTable, created)
    return results
  }
}

interface PetRef { account: number, petId: number, conditions: Conditions }

function prefetchPets (tx: Transaction, inputs: PetRef[]): void {
  prefetchTrackedPets(tx, inputs.map(({ account, petId }) => ({ account, id: petId })))
}

export interface PetChange extends PetRef { patch: PetUpdate }

export const updatePet: Command<PetChange, Pet> = {
  name: 'updatePet',
  locks: ({ petId, patch }) => [change(petId), ...patch.categoryId === undefined ? [] : [referTo(patch.categoryId)]],
  prefetch: prefetchPets,
  async run (tx, inputs) {
    const pets = await loadTrackedPets(tx, inputs.map(({ account, petId }) => ({ account, id: petId })))
    const categories = tx.owners(categoryTable)
    const results = inputs.map(({ account, petId, patch, conditions }): CommandResult<Pet> => {
      const pet = pets.get(account, petId)
      if (pet === undefined) return new PetNotFound()
      const failed = checkPreconditions(conditions, etagOf(pet.version))
      if (failed !== undefined) return failed
      const { name = pet.name, categoryId = pet.categoryId, status = pet.status } = patch
      if (categoryId !== pet.categoryId && categories.get(categoryId) !== account) return new UnknownCategory()
      if (setStatus(pet, status) === undefined) {
        return new InvalidStatusTransition(pet.status, status, pet.status === 'sold' ? '' : ' while its stock is 0')
      }
      if (name === pet.name && categoryId === pet.categoryId && status === pet.status) {
        return { record: petRecord(pet), etag: etagOf(pet.version) }
      }
      pets.update(pet, { name, categoryId, status })
      return { record: petRecord(pet), etag: etagOf(pet.version), events: [petUpdated(pet)] }
    })
    pets.save()
    return results
  }
}

export const deletePet: Command<PetRef, undefined> = {
  name: 'deletePet',
  locks: ({ petId }) => [change(petId)],
  prefetch: prefetchPets,
  async run (tx, inputs) {
    const pets = await loadTrackedPets(tx, inputs.map(({ account, petId }) => ({ account, id: petId })))
    const input = tx.dialect.jsonRows('i', { id: 'bigint' })
    const ordered = await tx.query<{ id: number }>(
      `SELECT i.id FROM ${input} WHERE EXISTS (SELECT 1 FROM orders o WHERE o.pet_id = i.id)`,
      inputs.map(({ petId }) => ({ id: petId })))
    const inUse = new Set(ordered.map(({ id }) => id))
    const deleted: Array<{ id: number }> = []
    const results = inputs.map(({ account, petId, conditions }): CommandResult<undefined> => {
      const pet = pets.get(account, petId)
      if (pet === undefined) return new PetNotFound()
      const failed = checkPreconditions(conditions, etagOf(pet.version))
      if (failed !== undefined) return failed
      if (inUse.has(petId)) return new PetInUse()
      pets.remove(pet)
      deleted.push({ id: petId })
      return { record: undefined, events: [petEvents.deleted({ pet: petRecord(pet) })] }
    })
    await tx.execute(`DELETE FROM inventory_items WHERE pet_id IN (SELECT i.id FROM ${input})`, deleted)
    await tx.execute(`DELETE FROM pets WHERE id IN (SELECT i.id FROM ${input})`, deleted)
    return results
  }
}
