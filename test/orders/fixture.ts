import { orderList } from '../../src/orders/queries.ts'
import type { Fixture } from '../support/fixture.ts'
import { newOrder, stocked } from '../support/fixtures.ts'

export const fixture: Fixture = {
  record: {
    idName: 'orderId',
    create: async (client, { petId }) => await newOrder(client, Number(petId)),
    missingCode: 'order_not_found'
  },
  list: {
    definition: orderList,
    samples: { petId: 5, complete: true },
    insertRows: ({ from, account }) => `INSERT INTO orders (id, account_id, pet_id, quantity, complete)
      SELECT i, ${account}, i, 1, i % 2 = 0 ${from}`
  },
  changes: {
    updateOrder: async (ada) => {
      const path = `/store/orders/${await newOrder(ada, await stocked(ada, 3))}`
      return { read: path, method: 'PATCH', path, bodies: [{ shipDate: '2026-12-24T18:00:00Z' }, { complete: true }] }
    },
    cancelOrder: async (ada) => {
      const path = `/store/orders/${await newOrder(ada, await stocked(ada, 3))}`
      return { read: path, method: 'DELETE', path, bodies: [undefined] }
    }
  },
  operations: {
    'get /store/orders': ['listOrders', 'orders', 200],
    'post /store/orders': ['placeOrder', 'orders', 201, 'unknown_pet', 'pet_not_available', 'insufficient_stock'],
    'get /store/orders/{orderId}': ['getOrder', 'orders', 200, 'order_not_found'],
    'patch /store/orders/{orderId}': ['updateOrder', 'orders', 200, 'order_not_found', 'order_already_shipped'],
    'delete /store/orders/{orderId}': ['cancelOrder', 'orders', 204, 'order_not_found', 'order_already_shipped']
  },
  keyedWrites: {
    placeOrder: {
      prepare: async (ada) => ['POST', '/store/orders', { petId: await stocked(ada, 5), quantity: 2 }],
      shows: '/inventory'
    },
    updateOrder: {
      prepare: async (ada) => [
        'PATCH',
        `/store/orders/${await newOrder(ada, await stocked(ada, 5))}`,
        { complete: true }
      ],
      shows: '/store/orders'
    },
    cancelOrder: {
      prepare: async (ada) => ['DELETE', `/store/orders/${await newOrder(ada, await stocked(ada, 5))}`],
      shows: '/inventory'
    }
  },
  errors: {
    order_not_found: { status: 404, raise: async (_app, client) => await client.get('/store/orders/4711') },
    insufficient_stock: {
      status: 409,
      raise: async (_app, client) =>
        await client.post('/store/orders', { petId: await stocked(client, 1), quantity: 2 })
    },
    order_already_shipped: {
      status: 409,
      raise: async (_app, client) =>
        await client.delete(`/store/orders/${await newOrder(client, await stocked(client, 1), 1, true)}`)
    }
  }
}
