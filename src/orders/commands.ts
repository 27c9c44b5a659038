import { etagOf, recordOf } from '../database/record.ts'
import type { AccountRows } from '../database/unit-of-work/account-rows.ts'
import { children, forUpdate, through, type Need, type Write } from '../database/unit-of-work/write.ts'
import { inventoryItems, orders, pets, type OrderRow, type PetRow } from '../generated/tables.ts'
import { requireRow, type RecordRef } from '../http/record-routes.ts'
import { PetNotAvailable, UnknownPet } from '../pets/errors.ts'
import { completeOrder, releaseStock, reserveStock } from '../pets/rules.ts'
import { applyStock, inventoryRecord, petUpdated, stockOf } from '../pets/stock.ts'
import { InsufficientStock, OrderAlreadyShipped, OrderNotFound } from './errors.ts'
import { orderEvents, OrderSchema, type NewOrder, type Order, type OrderUpdate } from './schemas.ts'

/** The open orders of a pet hold it, when its stock is empty. */
const openOrders = (petId: number): { petId: number, complete: false } => ({ petId, complete: false })

export const placeOrder: Write<{ order: NewOrder }, Order> = {
  name: 'placeOrder',
  needs: ({ order: { petId, complete = false } }) => [
    forUpdate(pets, petId),
    forUpdate(inventoryItems, petId),
    // An order that is placed open holds the pet itself.
    ...complete ? [children(orders, openOrders(petId))] : []
  ],
  creates: [orders],
  decide (input, rows) {
    const { quantity = 1, shipDate, ...others } = input.order
    const { petId, complete = false } = others
    const pet = rows.get(pets, petId)
    if (pet === undefined) throw new UnknownPet()
    const before = stockOf(rows, pet, complete && rows.has(orders, openOrders(petId)) ? 1 : 0)
    const stock = reserveStock(before, quantity, complete)
    if (stock === 'pet_not_available') throw new PetNotAvailable(pet.status)
    if (stock === 'insufficient_stock') throw new InsufficientStock(shortage(before.quantity, quantity))
    const order = rows.insert(orders, { quantity, shipDate: instant(shipDate), ...others })
    const updated = applyStock(rows, pet, stock) ? [petUpdated(rows, petId)] : []
    const record = recordOf(OrderSchema, order)
    const data = { order: record, inventory: currentInventory(rows, petId) }
    const completed = complete ? [orderEvents.completed(data)] : []
    return { record, etag: etagOf(1), events: [orderEvents.placed(data), ...completed, ...updated] }
  }
}

type OrderRef = RecordRef<'orderId'>

export const updateOrder: Write<OrderRef & { patch: OrderUpdate }, Order> = {
  name: 'updateOrder',
  needs: ({ orderId }) => ofOrder(orderId),
  decide ({ orderId, patch, conditions }, rows) {
    const order = requireRow(rows, orders, orderId, OrderNotFound, conditions)
    const shipDate = patch.shipDate === undefined ? order.shipDate : instant(patch.shipDate)
    const changed = rows.update(orders, order, { ...patch, shipDate })
    const record = recordOf(OrderSchema, changed)
    if (changed === order) return { record, etag: etagOf(order.version) }
    if (order.complete) throw new OrderAlreadyShipped('changed')
    const { petId, complete } = changed
    const statusChanged = complete && applyStock(rows, petOf(rows, order), completeOrder(stockBefore(rows, petId)))
    const data = { order: record, inventory: currentInventory(rows, petId) }
    const event = complete ? orderEvents.completed(data) : orderEvents.updated(data)
    const events = statusChanged ? [event, petUpdated(rows, petId)] : [event]
    return { record, etag: etagOf(changed.version), events }
  }
}

export const cancelOrder: Write<OrderRef, undefined> = {
  name: 'cancelOrder',
  needs: ({ orderId }) => ofOrder(orderId),
  decide ({ orderId, conditions }, rows) {
    const order = requireRow(rows, orders, orderId, OrderNotFound, conditions)
    if (order.complete) throw new OrderAlreadyShipped('cancelled')
    const { petId, quantity } = order
    rows.delete(orders, order)
    const statusChanged = applyStock(rows, petOf(rows, order), releaseStock(stockBefore(rows, petId), quantity))
    const record = recordOf(OrderSchema, order)
    const event = orderEvents.cancelled({ order: record, inventory: currentInventory(rows, petId) })
    return { record: undefined, events: statusChanged ? [event, petUpdated(rows, petId)] : [event] }
  }
}

/** What is needed to end an order. The pet is locked first: it stands for its stock and all of its orders. */
function ofOrder (orderId: number): Need[] {
  const petId = through(orders, orderId, 'petId')
  return [
    forUpdate(pets, petId),
    forUpdate(inventoryItems, petId),
    forUpdate(orders, orderId),
    children(orders, { petId, complete: false })
  ]
}

function petOf (rows: AccountRows, { petId }: Readonly<OrderRow>): Readonly<PetRow> {
  return rows.get(pets, petId)!
}

/** Returns the stock of the pet of an order that was open, and has ended. */
function stockBefore (rows: AccountRows, petId: number): ReturnType<typeof stockOf> {
  return stockOf(rows, rows.get(pets, petId)!, rows.has(orders, openOrders(petId)) ? 2 : 1)
}

function currentInventory (rows: AccountRows, petId: number): ReturnType<typeof inventoryRecord> {
  return inventoryRecord(rows.get(pets, petId)!, rows.get(inventoryItems, petId))
}

/** Returns an instant in UTC, cut to milliseconds: both databases store it and every response shows it so. */
function instant (text: string | null | undefined): string | null {
  return text == null ? null : new Date(text).toISOString()
}

function shortage (quantity: number | undefined, ordered: number): string {
  return quantity === undefined
    ? 'The pet has never been counted, so it has no stock. Count it first: PATCH its inventory entry with a quantity'
    : `The pet has ${quantity} in stock, fewer than the ${ordered} ordered`
}
