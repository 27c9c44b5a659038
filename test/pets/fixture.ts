import { petList } from '../../src/pets/queries.ts'
import { database } from '../support/database.ts'
import type { Fixture } from '../support/fixture.ts'
import { newCategory, newOrder, newPet, setStatus, stocked } from '../support/fixtures.ts'

const STATUS = "CASE i % 3 WHEN 0 THEN 'available' WHEN 1 THEN 'pending' ELSE 'sold' END"

export const fixture: Fixture = {
  record: {
    idName: 'petId',
    create: async (client, { categoryId }) => await newPet(client, { categoryId: Number(categoryId) }),
    missingCode: 'pet_not_found'
  },
  list: {
    definition: petList,
    samples: { status: 'pending', categoryId: 7 },
    insertRows: ({ from, account }) => `INSERT INTO pets (id, account_id, name, category_id, status)
      SELECT i, ${account}, 'p', i, ${database === 'sqlite' ? STATUS : `CAST(${STATUS} AS pet_status)`} ${from}`
  },
  changes: {
    updatePet: async (ada) => {
      const petId = await newPet(ada)
      const bodies = [{ name: 'Waldi' }, { status: 'pending' }]
      return { read: `/pets?id=${petId}`, method: 'PATCH', path: `/pets/${petId}`, bodies }
    },
    deletePet: async (ada) => {
      const petId = await newPet(ada)
      return { read: `/pets?id=${petId}`, method: 'DELETE', path: `/pets/${petId}`, bodies: [undefined] }
    }
  },
  operations: {
    'get /pets': ['listPets', 'animals', 200],
    'post /pets': ['createPet', 'animals', 201, 'unknown_category'],
    'get /pets/{petId}': ['getPet', 'animals', 200, 'operation_sunset', 'pet_not_found'],
    'patch /pets/{petId}': [
      'updatePet',
      'animals',
      200,
      'pet_not_found',
      'invalid_status_transition',
      'unknown_category'
    ],
    'delete /pets/{petId}': ['deletePet', 'animals', 204, 'pet_not_found', 'pet_in_use']
  },
  keyedWrites: {
    createPet: {
      prepare: async (ada) => ['POST', '/pets', { name: 'Rex', categoryId: await newCategory(ada) }],
      shows: '/pets'
    },
    updatePet: {
      prepare: async (ada) => ['PATCH', `/pets/${await newPet(ada)}`, { status: 'pending' }],
      shows: '/pets'
    },
    deletePet: { prepare: async (ada) => ['DELETE', `/pets/${await newPet(ada)}`], shows: '/pets' }
  },
  errors: {
    pet_not_found: { status: 404, raise: async (_app, client) => await client.patch('/pets/4711', {}) },
    unknown_pet: { status: 409, raise: async (_app, client) => await client.post('/store/orders', { petId: 4711 }) },
    pet_in_use: {
      status: 409,
      raise: async (_app, client) => {
        const petId = await stocked(client, 1)
        await newOrder(client, petId)
        return await client.delete(`/pets/${petId}`)
      }
    },
    pet_not_available: {
      status: 409,
      raise: async (_app, client) => {
        const petId = await stocked(client, 1)
        await setStatus(client, petId, 'pending')
        return await client.post('/store/orders', { petId })
      }
    },
    invalid_status_transition: {
      status: 409,
      raise: async (_app, client) => {
        const petId = await newPet(client, { status: 'sold' })
        return await client.patch(`/pets/${petId}`, { status: 'available' })
      }
    },
    operation_sunset: {
      status: 410,
      settings: { PET_READ_SUNSET: '2025-12-05' },
      raise: async (_app, client) => await client.get('/pets/1')
    }
  }
}
