import { inventoryList } from '../../src/inventory/queries.ts'
import type { Fixture } from '../support/fixture.ts'
import { count, newPet, stocked } from '../support/fixtures.ts'

export const fixture: Fixture = {
  record: {
    // An inventory entry has the id of its pet.
    idName: 'petId',
    create: async (client, { petId }) => {
      await count(client, Number(petId), 1_000_000)
      return Number(petId)
    },
    missingCode: 'pet_not_found'
  },
  list: {
    definition: inventoryList,
    samples: { status: 'pending' },
    insertRows: ({ from, account }) =>
      `INSERT INTO inventory_items (pet_id, account_id, quantity) SELECT i, ${account}, 1 ${from}`
  },
  changes: {
    updateInventory: async (ada) => {
      const path = `/inventory/${await stocked(ada, 3)}`
      return { read: path, method: 'PATCH', path, bodies: [{ quantity: 5 }, { quantity: 0 }] }
    }
  },
  operations: {
    'get /inventory': ['listInventory', 'inventory', 200],
    'get /inventory/{petId}': ['getInventoryItem', 'inventory', 200, 'pet_not_found', 'inventory_not_found'],
    'patch /inventory/{petId}': ['updateInventory', 'inventory', 200, 'pet_not_found']
  },
  keyedWrites: {
    updateInventory: {
      prepare: async (ada) => ['PATCH', `/inventory/${await newPet(ada)}`, { quantity: 5 }],
      shows: '/inventory'
    }
  },
  errors: {
    inventory_not_found: {
      status: 404,
      raise: async (_app, client) => await client.get(`/inventory/${await newPet(client)}`)
    }
  }
}
