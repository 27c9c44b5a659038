import { etagOf, checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import type { Command, CommandResult } from '../database/group-commit/command.ts'
import type { Dialect } from '../database/dialect.ts'
import type { Table } from '../database/sql/bulk-insert.ts'
import { boolean, integer, jsonObject, optional, time, type SerializedRecord } from '../database/sql/json-object.ts'
import { pageQuery, type ListDefinition, type Page, type PageRequest } from '../database/sql/keyset-pagination.ts'
import type { Query, Read } from '../database/read-batching.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import { InsufficientStock, OrderAlreadyShipped, OrderNotFound, PetNotAvailable, UnknownPet } from '../errors.ts'
import { inventoryRecord } from '../inventory/commands.ts'
import { releaseStock, complete as completeStock, reserveStock } from '../pets/rules.ts'
import { loadTrackedPets, petUpdated, type TrackedPet, type TrackedPets, type PetRequest } from '../pets/commands.ts'
import type { NewOrder, Order, OrderUpdate } from './schemas.ts'

const record = (dialect: Dialect): string => jsonObject(dialect, {
  id: integer('o.id'),
  petId: integer('o.pet_id'),
  quantity: integer('o.quantity'),
  shipDate: optional(time('o.ship_date')),
  complete: boolean('o.complete')
})

const orderById: Query<{ account: number, id: number }, { version: bigint, record: string }> = {
  sql: (dialect) => `
    SELECT i.ord, o.version, ${record(dialect)} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: 'bigint' })}
    JOIN orders o ON o.id = i.id AND o.account_id = i.account`
}

export const orders: ListDefinition = {
  name: 'orders',
  from: 'orders o',
  record,
  filters: {
    petId: { type: 'bigint', column: 'o.pet_id' },
    complete: { type: 'boolean', column: 'o.complete' }
  },
  indexes: [
    { name: 'orders_account_id_id_idx', columns: ['o.account_id'], position: 'o.id' },
    { name: 'orders_pet_id_account_id_id_idx', columns: ['o.pet_id', 'o.account_id'], position: 'o.id' },
    { name: 'orders_account_id_complete_id_idx', columns: ['o.account_id', 'o.complete'], position: 'o.id' }
  ]
}

export async function findOrder (read: Read, account: number, id: number): Promise<SerializedRecord | undefined> {
  const row = await read(orderById, { account, id })
  return row && { record: row.record, etag: etagOf(row.version) }
}

export async function listOrders (read: Read, account: number, page: PageRequest): Promise<Page> {
  return await read(...pageQuery(orders, page, account)) as Page
}

const table: Table = {
  name: 'orders',
  id: 'id',
  columns: { account_id: 'bigint', pet_id: 'bigint', quantity: 'bigint', ship_date: 'time', complete: 'boolean' }
}

/** Who gets stock is decided by the rules, in order of arrival; the sums are written back in one go. */
export const placeOrder: Command<{ account: number, order: NewOrder }, Order> = {
  name: 'placeOrder',
  rows: ({ order }) => ({ pets: [order.petId] }),
  creates: table,
  async run (tx, inputs) {
    const ids = await tx.allocateIds(table, inputs.length)
    const loaded = await loadTrackedPets(tx, taken(inputs))
    const placed: object[] = []
    const outcomes = inputs.map(({ account, order: { petId, quantity = 1, shipDate, complete = false } }): CommandResult<Order> => {
      const pet = loaded.get(account, petId)
      if (pet === undefined) return new UnknownPet()
      const stock = reserveStock(pet, quantity, complete)
      if (stock === 'pet_not_available') return new PetNotAvailable(pet.status)
      if (stock === 'insufficient_stock') return new InsufficientStock(shortage(pet, quantity))
      const shipped = instant(shipDate)
      const id = ids[placed.length]!
      placed.push({ id, account_id: account, pet_id: petId, quantity, ship_date: shipped, complete })
      const moved = loaded.move(pet, stock) ? [petUpdated(pet)] : []
      const record = orderRecord({ id, petId, quantity, shipDate: shipped, complete })
      const data = { order: record, inventory: inventoryRecord(pet) }
      const completed = complete ? [{ type: 'order.completed', data }] : []
      return { record, etag: etagOf(1), events: [{ type: 'order.placed', data }, ...completed, ...moved] }
    })
    loaded.save()
    tx.insert(table, placed)
    return outcomes
  }
}

/** The pets that are ordered, with the units of all their orders. */
function taken (inputs: Array<{ account: number, order: NewOrder }>): PetRequest[] {
  const pets = new Map<string, Required<PetRequest>>()
  for (const { account, order: { petId, quantity = 1 } } of inputs) {
    const pet = pets.get(`${account} ${petId}`)
    if (pet === undefined) pets.set(`${account} ${petId}`, { account, id: petId, takes: quantity })
    else pet.takes += quantity
  }
  return [...pets.values()]
}

interface OrderRef { account: number, orderId: number, conditions: Conditions }

export const updateOrder: Command<OrderRef & { patch: OrderUpdate }, Order> = {
  name: 'updateOrder',
  rows: ({ orderId }) => ({ orders: [orderId] }),
  async run (tx, inputs) {
    const { orders, pets } = await loadOrders(tx, inputs)
    const changed = new Set<LoadedOrder>()
    const outcomes = inputs.map(({ account, orderId, patch, conditions }): CommandResult<Order> => {
      const order = orders.get(orderId)
      if (order?.account !== account) return new OrderNotFound()
      const refused = checkPreconditions(conditions, etagOf(order.version))
      if (refused !== undefined) return refused
      const shipDate = patch.shipDate === undefined ? order.shipDate : instant(patch.shipDate)
      const complete = patch.complete ?? order.complete
      if (shipDate === order.shipDate && complete === order.complete) {
        return { record: orderRecord(order), etag: etagOf(order.version) }
      }
      if (order.complete) return new OrderAlreadyShipped('changed')
      Object.assign(order, { shipDate, complete, version: order.version + 1 })
      changed.add(order)
      const pet = pets.get(account, order.petId)!
      const moved = complete && pets.move(pet, completeStock(pet))
      const record = orderRecord(order)
      const events = [{ type: complete ? 'order.completed' : 'order.updated', data: { order: record, inventory: inventoryRecord(pet) } }]
      return { record, etag: etagOf(order.version), events: moved ? [...events, petUpdated(pet)] : events }
    })
    pets.save()
    const { dialect, execute } = tx
    await execute(`
      UPDATE orders SET ship_date = ${dialect.toTime('i."shipDate"')}, complete = i.complete, version = i.version
      FROM ${dialect.jsonRows('i', { id: 'bigint', shipDate: 'text', complete: 'boolean', version: 'bigint' })}
      WHERE orders.id = i.id`, [...changed])
    return outcomes
  }
}

export const cancelOrder: Command<OrderRef, undefined> = {
  name: 'cancelOrder',
  rows: ({ orderId }) => ({ orders: [orderId] }),
  async run (tx, inputs) {
    const { orders, pets } = await loadOrders(tx, inputs)
    const gone: Array<{ id: number }> = []
    const outcomes = inputs.map(({ account, orderId, conditions }): CommandResult<undefined> => {
      const order = orders.get(orderId)
      if (order?.account !== account) return new OrderNotFound()
      const refused = checkPreconditions(conditions, etagOf(order.version))
      if (refused !== undefined) return refused
      if (order.complete) return new OrderAlreadyShipped('cancelled')
      orders.delete(orderId)
      gone.push({ id: orderId })
      const pet = pets.get(account, order.petId)!
      const moved = pets.move(pet, releaseStock(pet, order.quantity))
      const events = [{ type: 'order.cancelled', data: { order: orderRecord(order), inventory: inventoryRecord(pet) } }]
      return { record: undefined, events: moved ? [...events, petUpdated(pet)] : events }
    })
    pets.save()
    await tx.execute(`DELETE FROM orders WHERE id IN (SELECT i.id FROM ${tx.dialect.jsonRows('i', { id: 'bigint' })})`, gone)
    return outcomes
  }
}

interface LoadedOrder {
  id: number
  account: number
  petId: number
  quantity: number
  shipDate: string | null
  complete: boolean
  version: number
}

async function loadOrders (tx: Transaction, inputs: OrderRef[]): Promise<{ orders: Map<number, LoadedOrder>, pets: TrackedPets }> {
  const { dialect, query } = tx
  const rows = await query<LoadedOrder>(`
    SELECT o.id, o.account_id AS account, o.pet_id AS "petId", o.quantity, ${dialect.time('o.ship_date')} AS "shipDate", o.complete, o.version
    FROM ${dialect.jsonRows('i', { account: 'bigint', id: 'bigint' })}
    JOIN orders o ON o.id = i.id AND o.account_id = i.account`,
  distinct(inputs.map(({ account, orderId }) => ({ account, id: orderId }))))
  // SQLite's booleans are 0 and 1.
  const orders = new Map(rows.map((row) => [row.id, { ...row, complete: Boolean(row.complete) }]))
  const pets = await loadTrackedPets(tx, rows.map(({ account, petId }) => ({ account, id: petId })), true)
  return { orders, pets }
}

function orderRecord ({ id, petId, quantity, shipDate, complete }: Omit<LoadedOrder, 'account' | 'version'>): Order {
  return { id, petId, quantity, ...(shipDate === null ? {} : { shipDate }), complete }
}

/** In UTC, cut to milliseconds: what both databases store and every answer shows. */
function instant (text: string | null | undefined): string | null {
  return text == null ? null : new Date(text).toISOString()
}

function shortage ({ quantity }: TrackedPet, ordered: number): string {
  return quantity === undefined
    ? 'The pet was never counted, so none can be ordered. Count it first: PATCH its inventory entry with a quantity'
    : `The pet has ${quantity} in stock, fewer than the ${ordered} ordered`
}
