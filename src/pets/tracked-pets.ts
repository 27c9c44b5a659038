import type { Dialect } from '../database/dialect.ts'
import { nextVersion } from '../database/entity-tag.ts'
import type { NewEvent } from '../database/group-commit/command.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import type { Table } from '../database/table.ts'
import { petEvents } from './events.ts'
import type { Stock } from './rules.ts'
import type { InventoryItem, Pet, PetStatus } from './schemas.ts'

/** The stock of counted pets. Pets are saved together with their stock, so its table is known here. */
export const inventoryTable: Table = {
  name: 'inventory_items',
  id: 'pet_id',
  columns: { account_id: 'bigint', quantity: 'bigint', version: 'bigint' }
}

/** A pet with its stock inside a command. Its rows are locked; `update` and `applyStock` mark what to save. */
export interface TrackedPet extends Stock {
  id: number
  account: number
  name: string
  categoryId: number
  status: PetStatus
  version: number
  versionFloor: number
  quantity: number | undefined
  /** Version of the count; 0 for a pet that has never been counted. */
  stockVersion: number
  stockVersionFloor: number
  open: number
}

export interface TrackedPets {
  get: (account: number, id: number) => TrackedPet | undefined
  update: (pet: TrackedPet, fields: Partial<Pick<TrackedPet, 'name' | 'categoryId' | 'status'>>) => void
  /** Applies the result of the rules. Returns whether the status changed, which is a change of the pet. */
  applyStock: (pet: TrackedPet, stock: Stock) => boolean
  remove: (pet: TrackedPet) => void
  save: () => void
}

/** A pet that a batch decides about. */
export interface PetRequest {
  account: number
  id: number
  /**
   * Units that the batch may reserve, if it does nothing else: a pet with more units keeps its status, whatever
   * orders are open.
   */
  reservedUnits?: number
}

/** Open orders are counted up to this number: a batch cannot close more. One is enough where none is closed. */
const MAX_OPEN_ORDERS = 257

type PetRow = Omit<TrackedPet, 'quantity' | 'stockVersion' | 'stockVersionFloor'> & {
  quantity: number | null, stockVersion: number | null, stockVersionFloor: number | null
}

/**
 * Loads the pets that a batch decides about, with their stock. The decisions of the batch, one input after the other,
 * change these objects and are saved together.
 *
 * @param closesOrders whether the batch may complete or cancel orders
 */
export async function loadTrackedPets (
  tx: Transaction, requests: PetRequest[], closesOrders = false
): Promise<TrackedPets> {
  const rows = await tx.query<PetRow>(petsSql(tx.dialect, closesOrders), distinct(requests))
  const pets = new Map(rows.map((row) => [row.id, trackedPet(row)]))
  const quantityBefore = new Map(rows.map(({ id, quantity }) => [id, quantity]))
  const updated = new Set<TrackedPet>()
  const restocked = new Set<TrackedPet>()

  function update (pet: TrackedPet, fields: Partial<TrackedPet>): void {
    Object.assign(pet, fields)
    pet.version = nextVersion(pet.version, pet.versionFloor)
    updated.add(pet)
  }

  return {
    update,
    get (account, id) {
      const pet = pets.get(id)
      return pet?.account === account ? pet : undefined
    },
    applyStock (pet, { status, quantity, open }) {
      if (quantity !== pet.quantity) {
        pet.quantity = quantity
        pet.stockVersion = nextVersion(pet.stockVersion, pet.stockVersionFloor)
        restocked.add(pet)
      }
      pet.open = open
      if (status === pet.status) return false
      update(pet, { status })
      return true
    },
    remove (pet) {
      pets.delete(pet.id)
    },
    save () {
      savePets(tx, [...updated])
      saveStock(tx, [...restocked], quantityBefore)
    }
  }
}

/** Lets `loadTrackedPets`, called first with the same arguments, travel with the row locks. */
export function prefetchTrackedPets (tx: Transaction, requests: PetRequest[]): void {
  tx.prefetch(petsSql(tx.dialect, false), distinct(requests))
}

function petsSql (dialect: Dialect, closesOrders: boolean): string {
  const open = dialect.keyset(
    [['o.pet_id', 'p.id'], ['o.account_id', 'p.account_id'], ['o.complete', 'false']], 'o.id', '0', false)
  const openOrders = `
    SELECT count(*) FROM (
      SELECT 1 FROM ${dialect.useIndex('orders o', 'o', 'orders_pet_id_account_id_complete_id_idx')}
      WHERE ${open.where} ORDER BY ${open.orderBy}
      LIMIT ${closesOrders ? MAX_OPEN_ORDERS : 1}) AS open`
  return `
    SELECT p.id, p.account_id AS account, p.name, p.category_id AS "categoryId",
      ${dialect.fromEnum('p.status')} AS status, p.version, p.version_floor AS "versionFloor", s.quantity,
      s.version AS "stockVersion", s.version_floor AS "stockVersionFloor",
      CASE WHEN s.quantity > i."reservedUnits" THEN 0 ELSE (${openOrders}) END AS open
    FROM ${dialect.jsonRows('i', { account: 'bigint', id: 'bigint', reservedUnits: 'bigint' })}
    JOIN pets p ON p.id = i.id AND p.account_id = i.account
    LEFT JOIN inventory_items s ON s.pet_id = p.id`
}

function trackedPet (row: PetRow): TrackedPet {
  const { id, account, name, categoryId, status, version, versionFloor, open, ...stock } = row
  const { quantity, stockVersion, stockVersionFloor } = stock
  return {
    id,
    account,
    name,
    categoryId,
    status,
    version,
    versionFloor,
    quantity: quantity ?? undefined,
    stockVersion: stockVersion ?? 0,
    // A restore may have removed an earlier count: then the floor of the pet applies.
    stockVersionFloor: stockVersionFloor ?? versionFloor,
    open
  }
}

function savePets ({ dialect, defer }: Transaction, updated: TrackedPet[]): void {
  const columns = { id: 'bigint', name: 'text', categoryId: 'bigint', status: 'text', version: 'bigint' } as const
  defer((parameter) => `
    UPDATE pets SET name = i.name, category_id = i."categoryId",
      status = ${dialect.toEnum('i.status', 'pet_status')}, version = i.version
    FROM ${dialect.jsonRows('i', columns, parameter)}
    WHERE pets.id = i.id`, updated)
}

function saveStock (
  { dialect, defer, insert }: Transaction, restocked: TrackedPet[], before: Map<number, number | null>
): void {
  const counted = restocked.map(({ id, account, quantity = 0, stockVersion: version }) =>
    ({ id, account, quantity, version, before: before.get(id) ?? null }))
  insert(inventoryTable, counted.filter((row) => row.before === null)
    .map(({ id, account, quantity, version }) => ({ pet_id: id, account_id: account, quantity, version })))
  // By difference: the column is 64 bits wide, a number here is exact to 2^53 only.
  defer((parameter) => `
    UPDATE inventory_items SET quantity = inventory_items.quantity + i.difference, version = i.version
    FROM ${dialect.jsonRows('i', { id: 'bigint', difference: 'bigint', version: 'bigint' }, parameter)}
    WHERE pet_id = i.id`,
  counted.flatMap((row) => row.before === null
    ? []
    : [{ id: row.id, difference: row.quantity - row.before, version: row.version }]))
}

export function petRecord ({ id, name, categoryId, status }: TrackedPet): Pet {
  return { id, name, categoryId, status }
}

export function inventoryRecord ({ id, quantity = 0, status }: TrackedPet): InventoryItem {
  return { petId: id, quantity, status }
}

export function petUpdated (pet: TrackedPet): NewEvent {
  const inventory = pet.quantity === undefined ? {} : { inventory: inventoryRecord(pet) }
  return petEvents.updated({ pet: petRecord(pet), ...inventory })
}
