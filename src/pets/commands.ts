import { etagOf, checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { InvalidStatusTransition, PetInUse, PetNotFound, UnknownCategory } from '../errors.ts'
import type { Command, CommandResult } from '../database/group-commit/command.ts'
import type { Dialect } from '../database/dialect.ts'
import type { Table } from '../database/sql/bulk-insert.ts'
import { enumText, integer, jsonObject, text, type SerializedRecord } from '../database/sql/json-object.ts'
import { pageQuery, type ListDefinition, type Page, type PageRequest } from '../database/sql/keyset-pagination.ts'
import type { Query, Read } from '../database/read-batching.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import type { PetStatus } from '../http/common-schemas.ts'
import { setStatus, type Stock } from './rules.ts'
import type { NewPet, Pet, PetUpdate } from './schemas.ts'

const record = (dialect: Dialect): string => jsonObject(dialect, {
  id: integer('p.id'),
  name: text('p.name'),
  categoryId: integer('p.category_id'),
  status: enumText('p.status')
})

const petById: Query<{ account: number, id: number }, { version: bigint, record: string }> = {
  sql: (dialect) => `
    SELECT i.ord, p.version, ${record(dialect)} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: 'bigint' })}
    JOIN pets p ON p.id = i.id AND p.account_id = i.account`
}

export const pets: ListDefinition = {
  name: 'pets',
  from: 'pets p',
  record,
  filters: {
    status: { type: 'text', column: 'p.status', enum: 'pet_status' },
    categoryId: { type: 'bigint', column: 'p.category_id' },
    id: { type: 'json', column: 'p.id' }
  },
  indexes: [
    { name: 'pets_account_id_id_idx', columns: ['p.account_id'], position: 'p.id' },
    { name: 'pets_category_id_account_id_id_idx', columns: ['p.category_id', 'p.account_id'], position: 'p.id' },
    { name: 'pets_account_id_status_id_idx', columns: ['p.account_id', 'p.status'], position: 'p.id' }
  ]
}

export async function findPet (read: Read, account: number, id: number): Promise<SerializedRecord | undefined> {
  const row = await read(petById, { account, id })
  return row && { record: row.record, etag: etagOf(row.version) }
}

export async function listPets (read: Read, account: number, page: PageRequest): Promise<Page> {
  return await read(...pageQuery(pets, page, account)) as Page
}

export const petTable: Table = {
  name: 'pets',
  id: 'id',
  columns: { account_id: 'bigint', name: 'text', category_id: 'bigint', status: { enum: 'pet_status' } }
}

export const createPet: Command<{ account: number, pet: NewPet }, Pet> = {
  name: 'createPet',
  rows: ({ pet }) => ({ usedCategories: [pet.categoryId] }),
  creates: petTable,
  async run (tx, inputs) {
    const ids = await tx.allocateIds(petTable, inputs.length)
    const created: object[] = []
    const outcomes = inputs.map(({ account, pet: { name, categoryId, status = 'available' } }): CommandResult<Pet> => {
      if (tx.categories.get(categoryId) !== account) return new UnknownCategory()
      const pet = { id: ids[created.length]!, name, categoryId, status }
      created.push({ id: pet.id, account_id: account, name, category_id: categoryId, status })
      return { record: pet, etag: etagOf(1), events: [{ type: 'pet.created', data: { pet } }] }
    })
    tx.insert(petTable, created)
    return outcomes
  }
}

export interface PetChange { account: number, petId: number, patch: PetUpdate, conditions: Conditions }

export const updatePet: Command<PetChange, Pet> = {
  name: 'updatePet',
  rows: ({ petId, patch }) => ({ pets: [petId], usedCategories: patch.categoryId === undefined ? [] : [patch.categoryId] }),
  async run (tx, inputs) {
    const loaded = await loadTrackedPets(tx, inputs.map(({ account, petId }) => ({ account, id: petId })))
    const outcomes = inputs.map(({ account, petId, patch, conditions }): CommandResult<Pet> => {
      const pet = loaded.get(account, petId)
      if (pet === undefined) return new PetNotFound()
      const refused = checkPreconditions(conditions, etagOf(pet.version))
      if (refused !== undefined) return refused
      const { name = pet.name, categoryId = pet.categoryId, status = pet.status } = patch
      if (categoryId !== pet.categoryId && tx.categories.get(categoryId) !== account) return new UnknownCategory()
      const stock = setStatus(pet, status)
      if (stock === undefined) {
        return new InvalidStatusTransition(pet.status, status, pet.status === 'sold' ? '' : ' while its stock is 0')
      }
      if (name === pet.name && categoryId === pet.categoryId && status === pet.status) {
        return { record: petRecord(pet), etag: etagOf(pet.version) }
      }
      loaded.change(pet, { name, categoryId, status })
      return { record: petRecord(pet), etag: etagOf(pet.version), events: [petUpdated(pet)] }
    })
    loaded.save()
    return outcomes
  }
}

export const deletePet: Command<{ account: number, petId: number, conditions: Conditions }, undefined> = {
  name: 'deletePet',
  rows: ({ petId }) => ({ pets: [petId] }),
  async run (tx, inputs) {
    const { dialect } = tx
    const loaded = await loadTrackedPets(tx, inputs.map(({ account, petId }) => ({ account, id: petId })))
    const input = dialect.jsonRows('i', { id: 'bigint' })
    const ids = inputs.map(({ petId }) => ({ id: petId }))
    const used = new Set((await tx.query<{ id: number }>(
      `SELECT i.id FROM ${input} WHERE EXISTS (SELECT 1 FROM orders o WHERE o.pet_id = i.id)`, ids)).map(({ id }) => id))
    const gone: Array<{ id: number }> = []
    const outcomes = inputs.map(({ account, petId, conditions }): CommandResult<undefined> => {
      const pet = loaded.get(account, petId)
      if (pet === undefined) return new PetNotFound()
      const refused = checkPreconditions(conditions, etagOf(pet.version))
      if (refused !== undefined) return refused
      if (used.has(petId)) return new PetInUse()
      loaded.drop(pet)
      gone.push({ id: petId })
      return { record: undefined, events: [{ type: 'pet.deleted', data: { pet: petRecord(pet) } }] }
    })
    await tx.execute(`DELETE FROM inventory_items WHERE pet_id IN (SELECT i.id FROM ${input})`, gone)
    await tx.execute(`DELETE FROM pets WHERE id IN (SELECT i.id FROM ${input})`, gone)
    return outcomes
  }
}

/** A pet with its stock, inside a command. The rows are locked; `change` and `move` note what to save. */
export interface TrackedPet extends Stock {
  id: number
  account: number
  name: string
  categoryId: number
  status: PetStatus
  version: number
  quantity: number | undefined
  /** Version of the count; 0 for a pet that was never counted. */
  stockVersion: number
  open: number
}

export interface TrackedPets {
  get: (account: number, id: number) => TrackedPet | undefined
  change: (pet: TrackedPet, fields: Partial<Pick<TrackedPet, 'name' | 'categoryId' | 'status'>>) => void
  /** Takes over what the rules said. @returns whether the status moved, which is a change of the pet */
  move: (pet: TrackedPet, stock: Stock) => boolean
  drop: (pet: TrackedPet) => void
  save: () => void
}

/** Open orders are counted up to this many: a batch cannot close more. One is enough where none is closed. */
const OPEN_ORDERS = 257

/** A pet that a batch decides about. */
export interface PetRequest {
  account: number
  id: number
  /** Units that the batch may take, if it does nothing else: who has more keeps its status, whatever orders are open. */
  takes?: number
}

/**
 * Loads the pets that a batch decides about, with their stock. What the batch decides, one input after
 * the other, is kept here and written back in one go.
 *
 * @param closing whether the batch may complete or cancel orders
 */
export async function loadTrackedPets (tx: Transaction, wanted: PetRequest[], closing = false): Promise<TrackedPets> {
  const { dialect, query, defer } = tx
  const rows = await query<Omit<TrackedPet, 'quantity' | 'stockVersion'> & { quantity: number | null, stockVersion: number | null }>(`
    SELECT p.id, p.account_id AS account, p.name, p.category_id AS "categoryId", ${dialect.fromEnum('p.status')} AS status, p.version,
      s.quantity, s.version AS "stockVersion",
      CASE WHEN s.quantity > i.takes THEN 0
        ELSE (SELECT count(*) FROM (SELECT 1 FROM orders o WHERE o.pet_id = p.id AND NOT o.complete LIMIT ${closing ? OPEN_ORDERS : 1}) AS open) END AS open
    FROM ${dialect.jsonRows('i', { account: 'bigint', id: 'bigint', takes: 'bigint' })}
    JOIN pets p ON p.id = i.id AND p.account_id = i.account
    LEFT JOIN inventory_items s ON s.pet_id = p.id`, distinct(wanted))
  const pets = new Map<number, TrackedPet>(rows.map(({ id, account, name, categoryId, status, version, quantity, stockVersion, open }) =>
    [id, { id, account, name, categoryId, status, version, quantity: quantity ?? undefined, stockVersion: stockVersion ?? 0, open }]))
  const loaded = new Map(rows.map(({ id, quantity }) => [id, quantity]))
  const changed = new Set<TrackedPet>()
  const moved = new Set<TrackedPet>()

  function change (pet: TrackedPet, fields: Partial<TrackedPet>): void {
    Object.assign(pet, fields)
    pet.version++
    changed.add(pet)
  }

  return {
    change,
    get (account, id) {
      const pet = pets.get(id)
      return pet?.account === account ? pet : undefined
    },
    move (pet, { status, quantity, open }) {
      if (quantity !== pet.quantity) {
        pet.quantity = quantity
        pet.stockVersion++
        moved.add(pet)
      }
      pet.open = open
      if (status === pet.status) return false
      change(pet, { status })
      return true
    },
    drop (pet) {
      pets.delete(pet.id)
    },
    save () {
      defer((parameter) => `
        UPDATE pets SET name = i.name, category_id = i."categoryId", status = ${dialect.toEnum('i.status', 'pet_status')}, version = i.version
        FROM ${dialect.jsonRows('i', { id: 'bigint', name: 'text', categoryId: 'bigint', status: 'text', version: 'bigint' }, parameter)}
        WHERE pets.id = i.id`, [...changed])
      const counted = [...moved].map(({ id, account, quantity = 0, stockVersion }) => ({ id, account, quantity, version: stockVersion, before: loaded.get(id) ?? null }))
      defer((parameter) => `
        INSERT INTO inventory_items (pet_id, account_id, quantity, version)
        SELECT i.id, i.account, i.quantity, i.version
        FROM ${dialect.jsonRows('i', { id: 'bigint', account: 'bigint', quantity: 'bigint', version: 'bigint' }, parameter)}`,
      counted.filter(({ before }) => before === null))
      // By difference: the column is 64 bits wide, a number here is exact to 2^53 only.
      defer((parameter) => `
        UPDATE inventory_items SET quantity = inventory_items.quantity + i.difference, version = i.version
        FROM ${dialect.jsonRows('i', { id: 'bigint', difference: 'bigint', version: 'bigint' }, parameter)}
        WHERE pet_id = i.id`,
      counted.flatMap(({ id, quantity, version, before }) => before === null ? [] : [{ id, difference: quantity - before, version }]))
    }
  }
}

function petRecord ({ id, name, categoryId, status }: TrackedPet): Pet {
  return { id, name, categoryId, status }
}

export function petUpdated (pet: TrackedPet): { type: string, data: object } {
  return { type: 'pet.updated', data: { pet: petRecord(pet) } }
}
