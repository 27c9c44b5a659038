import { updateInventory } from '../../src/inventory/commands.ts'
import type { PetStatus } from '../../src/pets/schemas.ts'
import { decisionsOf, refusals, type Rows } from '../support/decide.ts'

const petWith = (status: PetStatus, quantity?: number): Rows => ({
  pets: [{ id: 7, name: 'Rex', categoryId: 2, status }],
  inventoryItems: quantity === undefined ? [] : [{ petId: 7, quantity }]
})
const count = (quantity: number) => ({ petId: 7, quantity, conditions: {} })

export const decisions = [
  decisionsOf(updateInventory, {
    ...refusals(count(5), petWith('available', 3), 'PET_NOT_FOUND', '"1-available"'),
    'If-Match before the first count': {
      rows: petWith('available'), input: { ...count(5), conditions: { ifMatch: '*' } }, outcome: 'PRECONDITION_FAILED'
    },
    'If-Match of the count with another status': {
      rows: petWith('pending', 3),
      input: { ...count(5), conditions: { ifMatch: ['"1-available"'] } },
      outcome: 'PRECONDITION_FAILED'
    },
    'the first count': {
      rows: petWith('available'),
      input: { ...count(5), conditions: { ifNoneMatch: '*' } },
      outcome: {
        record: { petId: 7, quantity: 5, status: 'available' },
        etag: '"1-available"',
        events: ['inventory.counted'],
        saved: { inventoryItems: { 7: { quantity: 5 } } }
      }
    },
    'the first count after a restore removed another': {
      rows: { pets: [{ id: 7, name: 'Rex', categoryId: 2, versionFloor: 8 }] },
      input: count(5),
      outcome: {
        record: { petId: 7, quantity: 5, status: 'available' },
        etag: '"9-available"',
        events: ['inventory.counted'],
        saved: { inventoryItems: { 7: { quantity: 5, version: 9 } } }
      }
    },
    'a further count': {
      rows: petWith('available', 3),
      input: { ...count(5), conditions: { ifMatch: ['"1-available"'] } },
      outcome: {
        record: { petId: 7, quantity: 5, status: 'available' },
        etag: '"2-available"',
        events: ['inventory.counted'],
        saved: { inventoryItems: { 7: { quantity: 5, version: 2 } } }
      }
    },
    'the count that it has': {
      rows: petWith('available', 5),
      input: count(5),
      outcome: { record: { petId: 7, quantity: 5, status: 'available' }, etag: '"1-available"' }
    },
    'the count that it has, of a pet that is sold': {
      rows: petWith('sold', 5),
      input: count(5),
      outcome: {
        record: { petId: 7, quantity: 5, status: 'available' },
        etag: '"1-available"',
        events: ['inventory.counted', 'pet.updated'],
        saved: { pets: { 7: { status: 'available', version: 2 } } }
      }
    },
    'no units': {
      rows: { ...petWith('available', 5), orders: [{ id: 5, petId: 7, complete: true }] },
      input: count(0),
      outcome: {
        record: { petId: 7, quantity: 0, status: 'sold' },
        etag: '"2-sold"',
        events: ['inventory.counted', 'pet.updated'],
        saved: { inventoryItems: { 7: { quantity: 0, version: 2 } }, pets: { 7: { status: 'sold', version: 2 } } }
      }
    },
    'no units while an order is open': {
      rows: { ...petWith('available', 5), orders: [{ id: 5, petId: 7, complete: false }] },
      input: count(0),
      outcome: {
        record: { petId: 7, quantity: 0, status: 'pending' },
        etag: '"2-pending"',
        events: ['inventory.counted', 'pet.updated'],
        saved: { inventoryItems: { 7: { quantity: 0, version: 2 } }, pets: { 7: { status: 'pending', version: 2 } } }
      }
    }
  })
]
