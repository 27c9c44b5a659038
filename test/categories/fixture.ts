import { categoryList } from '../../src/categories/queries.ts'
import type { Fixture } from '../support/fixture.ts'
import { newCategory, newPet } from '../support/fixtures.ts'

export const fixture: Fixture = {
  record: {
    idName: 'categoryId',
    create: async (client) => await newCategory(client),
    missingCode: 'category_not_found'
  },
  list: {
    definition: categoryList,
    insertRows: ({ from, account }) =>
      `INSERT INTO categories (id, account_id, name) SELECT i, ${account}, 'c' ${from}`
  },
  changes: {
    updateCategory: async (ada) => {
      const path = `/categories/${await newCategory(ada)}`
      return { read: path, method: 'PATCH', path, bodies: [{ name: 'Cats' }, { name: 'Birds' }] }
    },
    deleteCategory: async (ada) => {
      const path = `/categories/${await newCategory(ada)}`
      return { read: path, method: 'DELETE', path, bodies: [undefined] }
    }
  },
  operations: {
    'get /categories': ['listCategories', 'categories', 200],
    'post /categories': ['createCategory', 'categories', 201],
    'get /categories/{categoryId}': ['getCategory', 'categories', 200, 'category_not_found'],
    'patch /categories/{categoryId}': ['updateCategory', 'categories', 200, 'category_not_found'],
    'delete /categories/{categoryId}': ['deleteCategory', 'categories', 204, 'category_not_found', 'category_in_use']
  },
  keyedWrites: {
    createCategory: { prepare: async () => ['POST', '/categories', { name: 'Dogs' }], shows: '/categories' },
    updateCategory: {
      prepare: async (ada) => ['PATCH', `/categories/${await newCategory(ada)}`, { name: 'Hounds' }],
      shows: '/categories'
    },
    deleteCategory: {
      prepare: async (ada) => ['DELETE', `/categories/${await newCategory(ada)}`],
      shows: '/categories'
    }
  },
  errors: {
    category_not_found: { status: 404, raise: async (_app, client) => await client.get('/categories/4711') },
    unknown_category: {
      status: 409,
      raise: async (_app, client) => await client.post('/pets', { name: 'Rex', categoryId: 4711 })
    },
    category_in_use: {
      status: 409,
      raise: async (_app, client) => {
        const categoryId = await newCategory(client)
        await newPet(client, { categoryId })
        return await client.delete(`/categories/${categoryId}`)
      }
    }
  }
}
