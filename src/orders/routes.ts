import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { InsufficientStock, OrderAlreadyShipped, OrderNotFound } from './errors.ts'
import { PetNotAvailable, UnknownPet } from '../pets/errors.ts'
import { NoContent, ref } from '../http/common-schemas.ts'
import { sendChanged, sendCreated, sendFound, sendList } from '../http/record-routes.ts'
import { NewOrderSchema, OrderParams, OrderQuery, OrderSchema, OrdersSchema, OrderUpdateSchema } from './schemas.ts'
import { cancelOrder, placeOrder, updateOrder } from './commands.ts'
import { findOrder, listOrders } from './queries.ts'

/**
 * The contract disables interactive testing of this operation in document viewers. The viewer at `/docs` reads the
 * first extension, other viewers read the others.
 */
const NO_TESTING = {
  'x-hideTryItPanel': true,
  'x-hideReplay': true,
  'x-zudoku-playground-enabled': false,
  'x-explorer-enabled': false,
  'x-readme': { 'explorer-enabled': false },
  'x-mint': { metadata: { playground: 'none' } },
  'x-fern-explorer': false
}

export const orderRoutes: FastifyPluginAsyncTypebox = async function orderRoutes (app) {
  app.get('/store/orders', {
    schema: {
      operationId: 'listOrders',
      summary: 'List orders',
      description: 'Lists orders by id, a page at a time. An order must match all filters.',
      ...NO_TESTING,
      querystring: OrderQuery,
      response: { 200: OrdersSchema }
    }
  }, async (request, reply) => await sendList(request, reply, listOrders))

  app.post('/store/orders', {
    schema: {
      operationId: 'placeOrder',
      summary: 'Place an order',
      description: 'Takes units of an available pet out of its stock at once. The service accepts or rejects an ' +
        'order as a whole.',
      body: ref(NewOrderSchema),
      response: { 201: ref(OrderSchema) }
    },
    config: { errors: [UnknownPet, PetNotAvailable, InsufficientStock] }
  }, async (request, reply) => await sendCreated(request, reply, placeOrder, { order: request.body }))

  app.get('/store/orders/:orderId', {
    schema: {
      operationId: 'getOrder',
      summary: 'Get an order',
      description: 'Returns one order.',
      params: OrderParams,
      response: { 200: ref(OrderSchema) }
    },
    config: { errors: [OrderNotFound] }
  }, async (request, reply) => await sendFound(request, reply, findOrder, request.params.orderId, OrderNotFound))

  app.patch('/store/orders/:orderId', {
    schema: {
      operationId: 'updateOrder',
      summary: 'Change or complete an order',
      description: 'A JSON merge patch. Completing an order changes no stock and sets no date. A complete order ' +
        'cannot be changed.',
      params: OrderParams,
      body: ref(OrderUpdateSchema),
      response: { 200: ref(OrderSchema) }
    },
    config: { errors: [OrderNotFound, OrderAlreadyShipped] }
  }, async (request, reply) =>
    await sendChanged(request, reply, updateOrder, { patch: request.body, ...request.params }))

  app.delete('/store/orders/:orderId', {
    schema: {
      operationId: 'cancelOrder',
      summary: 'Cancel an order',
      description: 'Deletes an order that is not complete and returns its units to the stock.',
      'x-stability': 'beta',
      params: OrderParams,
      response: { 204: NoContent }
    },
    config: { errors: [OrderNotFound, OrderAlreadyShipped], examples: { orderId: 4 } }
  }, async (request, reply) => await sendChanged(request, reply, cancelOrder, request.params))
}
