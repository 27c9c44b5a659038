import { cancelOrder, placeOrder, updateOrder } from '../../src/orders/commands.ts'
import type { PetStatus } from '../../src/pets/schemas.ts'
import { decisionsOf, NEW_ID, refusals, type Rows } from '../support/decide.ts'

/** A pet with units, and its orders. */
const petWith = (status: PetStatus, quantity: number, ...orders: NonNullable<Rows['orders']>): Rows => ({
  pets: [{ id: 7, name: 'Rex', categoryId: 2, status }],
  inventoryItems: [{ petId: 7, quantity }],
  orders: orders.map((order) => ({ petId: 7, quantity: 2, ...order }))
})
const OPEN = { id: 5, complete: false, shipDate: '2027-01-01T10:00:00.000Z' }
const OTHER = { id: 6, complete: false }
const COMPLETE = { ...OPEN, complete: true }
const RECORD = { id: 5, petId: 7, quantity: 2, shipDate: OPEN.shipDate }
const NEW = { id: NEW_ID, petId: 7, quantity: 2 }

const order = (quantity: number, complete = false) => ({ order: { petId: 7, quantity, complete } })
const ref = { orderId: 5, conditions: {} }
const ship = { ...ref, patch: { complete: true } }

export const decisions = [
  decisionsOf(placeOrder, {
    'an order that leaves units': {
      rows: petWith('available', 3),
      input: order(2),
      outcome: {
        record: { ...NEW, complete: false },
        etag: '"1"',
        events: ['order.placed'],
        saved: { orders: { [NEW_ID]: { petId: 7, quantity: 2 } }, inventoryItems: { 7: { quantity: 1, version: 2 } } }
      }
    },
    'an order of one unit by default, with a date in another time zone': {
      rows: petWith('available', 3),
      input: { order: { petId: 7, shipDate: '2027-01-01T12:00:00.1234+02:00' } },
      outcome: {
        record: { ...NEW, quantity: 1, shipDate: '2027-01-01T10:00:00.123Z', complete: false },
        etag: '"1"',
        events: ['order.placed'],
        saved: {
          orders: { [NEW_ID]: { petId: 7, quantity: 1, shipDate: '2027-01-01T10:00:00.123Z' } },
          inventoryItems: { 7: { quantity: 2, version: 2 } }
        }
      }
    },
    'a complete order that leaves units': {
      rows: petWith('available', 3),
      input: order(2, true),
      outcome: {
        record: { ...NEW, complete: true },
        etag: '"1"',
        events: ['order.placed', 'order.completed'],
        saved: {
          orders: { [NEW_ID]: { petId: 7, quantity: 2, complete: true } },
          inventoryItems: { 7: { quantity: 1, version: 2 } }
        }
      }
    },
    'an open order of the last units': {
      rows: petWith('available', 2),
      input: order(2),
      outcome: {
        record: { ...NEW, complete: false },
        etag: '"1"',
        events: ['order.placed', 'pet.updated'],
        saved: {
          orders: { [NEW_ID]: { petId: 7, quantity: 2 } },
          inventoryItems: { 7: { quantity: 0, version: 2 } },
          pets: { 7: { status: 'pending', version: 2 } }
        }
      }
    },
    'a complete order of the last units': {
      rows: petWith('available', 2, COMPLETE),
      input: order(2, true),
      outcome: {
        record: { ...NEW, complete: true },
        etag: '"1"',
        events: ['order.placed', 'order.completed', 'pet.updated'],
        saved: {
          orders: { [NEW_ID]: { petId: 7, quantity: 2, complete: true } },
          inventoryItems: { 7: { quantity: 0, version: 2 } },
          pets: { 7: { status: 'sold', version: 2 } }
        }
      }
    },
    'a complete order of the last units beside an open one': {
      rows: petWith('available', 2, OPEN),
      input: order(2, true),
      outcome: {
        record: { ...NEW, complete: true },
        etag: '"1"',
        events: ['order.placed', 'order.completed', 'pet.updated'],
        saved: {
          orders: { [NEW_ID]: { petId: 7, quantity: 2, complete: true } },
          inventoryItems: { 7: { quantity: 0, version: 2 } },
          pets: { 7: { status: 'pending', version: 2 } }
        }
      }
    },
    'an order of an unknown pet': { input: order(1), outcome: 'UNKNOWN_PET' },
    'an order of a pet that is not available': {
      rows: petWith('pending', 3), input: order(1), outcome: 'PET_NOT_AVAILABLE'
    },
    'an order of too many units': { rows: petWith('available', 3), input: order(4), outcome: 'INSUFFICIENT_STOCK' },
    'an order of a pet that was never counted': {
      rows: { ...petWith('available', 3), inventoryItems: [] }, input: order(1), outcome: 'INSUFFICIENT_STOCK'
    }
  }),
  decisionsOf(updateOrder, {
    ...refusals(ship, petWith('pending', 0, OPEN), 'ORDER_NOT_FOUND'),
    'the last open order is shipped': {
      rows: petWith('pending', 0, OPEN),
      input: { ...ship, conditions: { ifMatch: ['"1"'] } },
      outcome: {
        record: { ...RECORD, complete: true },
        etag: '"2"',
        events: ['order.completed', 'pet.updated'],
        saved: { orders: { 5: { complete: true, version: 2 } }, pets: { 7: { status: 'sold', version: 2 } } }
      }
    },
    'an open order is shipped beside another': {
      rows: petWith('pending', 0, OPEN, OTHER),
      input: ship,
      outcome: {
        record: { ...RECORD, complete: true },
        etag: '"2"',
        events: ['order.completed'],
        saved: { orders: { 5: { complete: true, version: 2 } } }
      }
    },
    'an order is shipped while there are units': {
      rows: petWith('available', 1, OPEN),
      input: ship,
      outcome: {
        record: { ...RECORD, complete: true },
        etag: '"2"',
        events: ['order.completed'],
        saved: { orders: { 5: { complete: true, version: 2 } } }
      }
    },
    'another date': {
      rows: petWith('available', 1, OPEN),
      input: { ...ref, patch: { shipDate: '2027-02-01T12:00:00+02:00' } },
      outcome: {
        record: { ...RECORD, shipDate: '2027-02-01T10:00:00.000Z', complete: false },
        etag: '"2"',
        events: ['order.updated'],
        saved: { orders: { 5: { shipDate: '2027-02-01T10:00:00.000Z', version: 2 } } }
      }
    },
    'null for the date': {
      rows: petWith('available', 1, OPEN),
      input: { ...ref, patch: { shipDate: null } },
      outcome: {
        record: { id: 5, petId: 7, quantity: 2, complete: false },
        etag: '"2"',
        events: ['order.updated'],
        saved: { orders: { 5: { shipDate: null, version: 2 } } }
      }
    },
    'the date that it has, in another time zone': {
      rows: petWith('available', 1, OPEN),
      input: { ...ref, patch: { shipDate: '2027-01-01T12:00:00+02:00' } },
      outcome: { record: { ...RECORD, complete: false }, etag: '"1"' }
    },
    'an empty patch': {
      rows: petWith('available', 1, OPEN),
      input: { ...ref, patch: {} },
      outcome: { record: { ...RECORD, complete: false }, etag: '"1"' }
    },
    'a shipped order is shipped again': {
      rows: petWith('available', 1, COMPLETE),
      input: ship,
      outcome: { record: { ...RECORD, complete: true }, etag: '"1"' }
    },
    'a shipped order is reopened': {
      rows: petWith('available', 1, COMPLETE),
      input: { ...ref, patch: { complete: false } },
      outcome: 'ORDER_ALREADY_SHIPPED'
    }
  }),
  decisionsOf(cancelOrder, {
    ...refusals(ref, petWith('pending', 0, OPEN), 'ORDER_NOT_FOUND'),
    'an order of the last units is cancelled': {
      rows: petWith('pending', 0, OPEN),
      input: { ...ref, conditions: { ifMatch: ['"1"'] } },
      outcome: {
        events: ['order.cancelled', 'pet.updated'],
        saved: {
          orders: { 5: null },
          inventoryItems: { 7: { quantity: 2, version: 2 } },
          pets: { 7: { status: 'available', version: 2 } }
        }
      }
    },
    'an order of a pet that was set to pending': {
      rows: petWith('pending', 1, OPEN),
      input: ref,
      outcome: {
        events: ['order.cancelled'],
        saved: { orders: { 5: null }, inventoryItems: { 7: { quantity: 3, version: 2 } } }
      }
    },
    'a shipped order': { rows: petWith('available', 1, COMPLETE), input: ref, outcome: 'ORDER_ALREADY_SHIPPED' }
  })
]
