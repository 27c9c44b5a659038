import type { Dialect } from '../database/dialect.ts'
import { etagOf, nextVersion } from '../database/entity-tag.ts'
import type { Command, CommandResult, RowLock } from '../database/group-commit/command.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import { jsonMembers } from '../database/sql/json-object.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { PetNotAvailable, UnknownPet } from '../pets/errors.ts'
import { petTable } from '../pets/queries.ts'
import { completeOrder, releaseStock, reserveStock } from '../pets/rules.ts'
import {
  inventoryRecord, loadTrackedPets, petUpdated, prefetchTrackedPets, type PetRequest, type TrackedPet, type TrackedPets
} from '../pets/tracked-pets.ts'
import { InsufficientStock, OrderAlreadyShipped, OrderNotFound } from './errors.ts'
import { orderTable } from './queries.ts'
import { orderEvents, type NewOrder, type Order, type OrderUpdate } from './schemas.ts'

/** The rules decide about stock in order of arrival; the sums are saved in one statement. */
export const placeOrder: Command<{ account: number, order: NewOrder }, Order> = {
  name: 'placeOrder',
  locks: ({ order }) => [{ table: petTable, ids: [order.petId], mode: 'update' }],
  creates: orderTable,
  prefetch: (tx, inputs) => { prefetchTrackedPets(tx, petRequests(inputs)) },
  fastPath: {
    inputs: { petId: 'bigint', quantity: 'bigint', shipDate: 'text', fields: 'text' },
    inputOf ({ order: { petId, quantity = 1, shipDate, complete = false } }) {
      // It has a second event.
      if (complete) return undefined
      const shipped = instant(shipDate)
      const { id: _, ...others } = orderRecord({ id: 0, petId, quantity, shipDate: shipped, complete })
      return { petId, quantity, shipDate: shipped, fields: jsonMembers(others) }
    },
    // Units are left, so the pet stays available.
    steps: (dialect) => [
      {
        name: 'pet',
        find: 'pets',
        id: ['id', '@petId'],
        where: `pets.account_id = @account AND pets.status = ${dialect.toEnum("'available'", 'pet_status')}`,
        columns: { id: 'bigint' },
        lock: 'update'
      },
      {
        name: 'reserved',
        add: 'inventory_items',
        id: ['pet_id', '@pet.id'],
        amount: '-@quantity',
        minimum: 1,
        isVersioned: true,
        columns: { quantity: 'bigint' }
      },
      {
        name: 'made',
        insert: 'orders',
        values: {
          account_id: '@account',
          pet_id: '@pet.id',
          quantity: '@quantity',
          ship_date: dialect.toTime('@shipDate'),
          complete: 'false'
        },
        columns: { id: 'bigint' }
      }
    ],
    event: {
      type: orderEvents.placed.type,
      data: '{"order":{"id":@made.id,@fields},' +
        '"inventory":{"petId":@pet.id,"quantity":@reserved.quantity,"status":"available"}}'
    },
    resultOf: ({ order: { petId, quantity = 1, shipDate, complete = false } }, id) => ({
      record: orderRecord({ id: Number(id), petId, quantity, shipDate: instant(shipDate), complete }), etag: etagOf(1)
    })
  },
  async run (tx, inputs) {
    const ids = await tx.allocateIds(orderTable, inputs.length)
    const pets = await loadTrackedPets(tx, petRequests(inputs))
    const placed: object[] = []
    const results = inputs.map(({ account, order }): CommandResult<Order> => {
      const { petId, quantity = 1, shipDate, complete = false } = order
      const pet = pets.get(account, petId)
      if (pet === undefined) return new UnknownPet()
      const stock = reserveStock(pet, quantity, complete)
      if (stock === 'pet_not_available') return new PetNotAvailable(pet.status)
      if (stock === 'insufficient_stock') return new InsufficientStock(shortage(pet, quantity))
      const shipped = instant(shipDate)
      const id = ids[placed.length]!
      placed.push({ id, account_id: account, pet_id: petId, quantity, ship_date: shipped, complete })
      const updated = pets.applyStock(pet, stock) ? [petUpdated(pet)] : []
      const record = orderRecord({ id, petId, quantity, shipDate: shipped, complete })
      const data = { order: record, inventory: inventoryRecord(pet) }
      const completed = complete ? [orderEvents.completed(data)] : []
      return { record, etag: etagOf(1), events: [orderEvents.placed(data), ...completed, ...updated] }
    })
    pets.save()
    tx.insert(orderTable, placed)
    return results
  }
}

/** Returns the ordered pets, each with the units of all its orders. */
function petRequests (inputs: Array<{ account: number, order: NewOrder }>): PetRequest[] {
  const pets = new Map<string, Required<PetRequest>>()
  for (const { account, order: { petId, quantity = 1 } } of inputs) {
    const pet = pets.get(`${account} ${petId}`)
    if (pet === undefined) pets.set(`${account} ${petId}`, { account, id: petId, reservedUnits: quantity })
    else pet.reservedUnits += quantity
  }
  return [...pets.values()]
}

interface OrderRef { account: number, orderId: number, conditions: Conditions }

/** Locks the order's pet, which stands for all of its orders. */
const locks = ({ orderId }: OrderRef): RowLock[] =>
  [{ table: petTable, ids: [orderId], through: { table: orderTable, column: 'pet_id' }, mode: 'update' }]

export const updateOrder: Command<OrderRef & { patch: OrderUpdate }, Order> = {
  name: 'updateOrder',
  locks,
  prefetch: prefetchOrders,
  async run (tx, inputs) {
    const { orders, pets } = await loadOrders(tx, inputs)
    const changed = new Set<LoadedOrder>()
    const results = inputs.map(({ account, orderId, patch, conditions }): CommandResult<Order> => {
      const order = orders.get(orderId)
      if (order?.account !== account) return new OrderNotFound()
      const failed = checkPreconditions(conditions, etagOf(order.version))
      if (failed !== undefined) return failed
      const shipDate = patch.shipDate === undefined ? order.shipDate : instant(patch.shipDate)
      const complete = patch.complete ?? order.complete
      if (shipDate === order.shipDate && complete === order.complete) {
        return { record: orderRecord(order), etag: etagOf(order.version) }
      }
      if (order.complete) return new OrderAlreadyShipped('changed')
      Object.assign(order, { shipDate, complete, version: nextVersion(order.version, order.versionFloor) })
      changed.add(order)
      const pet = pets.get(account, order.petId)!
      const statusChanged = complete && pets.applyStock(pet, completeOrder(pet))
      const record = orderRecord(order)
      const data = { order: record, inventory: inventoryRecord(pet) }
      const events = [complete ? orderEvents.completed(data) : orderEvents.updated(data)]
      return { record, etag: etagOf(order.version), events: statusChanged ? [...events, petUpdated(pet)] : events }
    })
    pets.save()
    const { dialect, defer } = tx
    const columns = { id: 'bigint', shipDate: 'text', complete: 'boolean', version: 'bigint' } as const
    defer((parameter) => `
      UPDATE orders SET ship_date = ${dialect.toTime('i."shipDate"')}, complete = i.complete, version = i.version
      FROM ${dialect.jsonRows('i', columns, parameter)}
      WHERE orders.id = i.id`, [...changed])
    return results
  }
}

export const cancelOrder: Command<OrderRef, undefined> = {
  name: 'cancelOrder',
  locks,
  prefetch: prefetchOrders,
  async run (tx, inputs) {
    const { orders, pets } = await loadOrders(tx, inputs)
    const cancelled: Array<{ id: number }> = []
    const results = inputs.map(({ account, orderId, conditions }): CommandResult<undefined> => {
      const order = orders.get(orderId)
      if (order?.account !== account) return new OrderNotFound()
      const failed = checkPreconditions(conditions, etagOf(order.version))
      if (failed !== undefined) return failed
      if (order.complete) return new OrderAlreadyShipped('cancelled')
      orders.delete(orderId)
      cancelled.push({ id: orderId })
      const pet = pets.get(account, order.petId)!
      const statusChanged = pets.applyStock(pet, releaseStock(pet, order.quantity))
      const events = [orderEvents.cancelled({ order: orderRecord(order), inventory: inventoryRecord(pet) })]
      return { record: undefined, events: statusChanged ? [...events, petUpdated(pet)] : events }
    })
    pets.save()
    const { dialect, defer } = tx
    defer((parameter) =>
      `DELETE FROM orders WHERE id IN (SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' }, parameter)})`, cancelled)
    return results
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
  versionFloor: number
}

function prefetchOrders (tx: Transaction, inputs: OrderRef[]): void {
  tx.prefetch(ordersSql(tx.dialect), keysOf(inputs))
}

async function loadOrders (
  tx: Transaction, inputs: OrderRef[]
): Promise<{ orders: Map<number, LoadedOrder>, pets: TrackedPets }> {
  const rows = await tx.query<LoadedOrder>(ordersSql(tx.dialect), keysOf(inputs))
  // SQLite's booleans are 0 and 1.
  const orders = new Map(rows.map((row) => [row.id, { ...row, complete: Boolean(row.complete) }]))
  const pets = await loadTrackedPets(tx, rows.map(({ account, petId }) => ({ account, id: petId })), true)
  return { orders, pets }
}

function ordersSql (dialect: Dialect): string {
  return `
    SELECT o.id, o.account_id AS account, o.pet_id AS "petId", o.quantity,
      ${dialect.time('o.ship_date')} AS "shipDate", o.complete, o.version,
      o.version_floor AS "versionFloor"
    FROM ${dialect.jsonRows('i', { account: 'bigint', id: 'bigint' })}
    JOIN orders o ON o.id = i.id AND o.account_id = i.account`
}

function keysOf (inputs: OrderRef[]): Array<{ account: number, id: number }> {
  return distinct(inputs.map(({ account, orderId }) => ({ account, id: orderId })))
}

type OrderFields = Pick<LoadedOrder, 'id' | 'petId' | 'quantity' | 'shipDate' | 'complete'>

function orderRecord ({ id, petId, quantity, shipDate, complete }: OrderFields): Order {
  return { id, petId, quantity, ...(shipDate === null ? {} : { shipDate }), complete }
}

/** Returns an instant in UTC, cut to milliseconds: both databases store it and every response shows it so. */
function instant (text: string | null | undefined): string | null {
  return text == null ? null : new Date(text).toISOString()
}

function shortage ({ quantity }: TrackedPet, ordered: number): string {
  return quantity === undefined
    ? 'The pet has never been counted, so it has no stock. Count it first: PATCH its inventory entry with a quantity'
    : `The pet has ${quantity} in stock, fewer than the ${ordered} ordered`
}
