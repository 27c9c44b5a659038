import { createPet, deletePet, updatePet } from '../../src/pets/commands.ts'
import type { PetStatus } from '../../src/pets/schemas.ts'
import { decisionsOf, NEW_ID, refusals, type Rows } from '../support/decide.ts'

const categories = [{ id: 2, name: 'Dogs' }, { id: 3, name: 'Hounds' }]
const rexWith = (status: PetStatus): Rows =>
  ({ categories, pets: [{ id: 7, name: 'Rex', categoryId: 2, status }] })
const REX = rexWith('available')
const ref = { petId: 7, conditions: {} }
const change = { ...ref, patch: { name: 'Max' } }

export const decisions = [
  decisionsOf(createPet, {
    'a name and a category': {
      rows: { categories },
      input: { pet: { name: 'Rex', categoryId: 2 } },
      outcome: {
        record: { id: NEW_ID, name: 'Rex', categoryId: 2, status: 'available' },
        etag: '"1"',
        events: ['pet.created'],
        saved: { pets: { [NEW_ID]: { name: 'Rex', categoryId: 2 } } }
      }
    },
    'a status': {
      rows: { categories },
      input: { pet: { name: 'Rex', categoryId: 2, status: 'sold' } },
      outcome: {
        record: { id: NEW_ID, name: 'Rex', categoryId: 2, status: 'sold' },
        etag: '"1"',
        events: ['pet.created'],
        saved: { pets: { [NEW_ID]: { name: 'Rex', categoryId: 2, status: 'sold' } } }
      }
    },
    'an unknown category': {
      rows: { categories }, input: { pet: { name: 'Rex', categoryId: 4 } }, outcome: 'UNKNOWN_CATEGORY'
    }
  }),
  decisionsOf(updatePet, {
    ...refusals(change, REX, 'PET_NOT_FOUND'),
    'another name': {
      rows: REX,
      input: { ...change, conditions: { ifMatch: ['"1"'] } },
      outcome: {
        record: { id: 7, name: 'Max', categoryId: 2, status: 'available' },
        etag: '"2"',
        events: ['pet.updated'],
        saved: { pets: { 7: { name: 'Max', version: 2 } } }
      }
    },
    'another category': {
      rows: REX,
      input: { ...ref, patch: { categoryId: 3 } },
      outcome: {
        record: { id: 7, name: 'Rex', categoryId: 3, status: 'available' },
        etag: '"2"',
        events: ['pet.updated'],
        saved: { pets: { 7: { categoryId: 3, version: 2 } } }
      }
    },
    'an unknown category': {
      rows: REX, input: { ...ref, patch: { categoryId: 4 } }, outcome: 'UNKNOWN_CATEGORY'
    },
    'another status': {
      rows: REX,
      input: { ...ref, patch: { status: 'pending' } },
      outcome: {
        record: { id: 7, name: 'Rex', categoryId: 2, status: 'pending' },
        etag: '"2"',
        events: ['pet.updated'],
        saved: { pets: { 7: { status: 'pending', version: 2 } } }
      }
    },
    'a status for a pet that is sold': {
      rows: rexWith('sold'), input: { ...ref, patch: { status: 'pending' } }, outcome: 'INVALID_STATUS_TRANSITION'
    },
    'available while the stock is 0': {
      rows: { ...rexWith('pending'), inventoryItems: [{ petId: 7, quantity: 0 }] },
      input: { ...ref, patch: { status: 'available' } },
      outcome: 'INVALID_STATUS_TRANSITION'
    },
    'available while there are units': {
      rows: { ...rexWith('pending'), inventoryItems: [{ petId: 7, quantity: 1 }] },
      input: { ...ref, patch: { status: 'available' } },
      outcome: {
        record: { id: 7, name: 'Rex', categoryId: 2, status: 'available' },
        etag: '"2"',
        events: ['pet.updated'],
        saved: { pets: { 7: { status: 'available', version: 2 } } }
      }
    },
    'what it has': {
      rows: rexWith('sold'),
      input: { ...ref, patch: { name: 'Rex', categoryId: 2, status: 'sold' } },
      outcome: { record: { id: 7, name: 'Rex', categoryId: 2, status: 'sold' }, etag: '"1"' }
    },
    'an empty patch': {
      rows: REX,
      input: { ...ref, patch: {} },
      outcome: { record: { id: 7, name: 'Rex', categoryId: 2, status: 'available' }, etag: '"1"' }
    }
  }),
  decisionsOf(deletePet, {
    ...refusals(ref, REX, 'PET_NOT_FOUND'),
    'a pet that was never counted': {
      rows: REX,
      input: { ...ref, conditions: { ifMatch: ['"1"'] } },
      outcome: { events: ['pet.deleted'], saved: { pets: { 7: null } } }
    },
    'a pet with a stock': {
      rows: { ...REX, inventoryItems: [{ petId: 7, quantity: 5 }] },
      input: ref,
      outcome: { events: ['pet.deleted'], saved: { inventoryItems: { 7: null }, pets: { 7: null } } }
    },
    'a pet with an open order': {
      rows: { ...REX, orders: [{ id: 5, petId: 7, complete: false }] }, input: ref, outcome: 'PET_IN_USE'
    },
    'a pet with a complete order': {
      rows: { ...REX, orders: [{ id: 5, petId: 7, complete: true }] }, input: ref, outcome: 'PET_IN_USE'
    }
  })
]
