import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { pageRequest } from '../http/pagination.ts'
import { sendWriteResult, sendPage, sendRecord } from '../http/responses.ts'
import { conditionsOf } from '../http/conditional-requests.ts'
import { InventoryNotFound } from './errors.ts'
import { PetNotFound } from '../pets/errors.ts'
import { writeContext } from '../http/idempotency.ts'
import { ref } from '../http/common-schemas.ts'
import { InventoryItemSchema, InventoryParams, InventoryQuery, InventoryUpdateSchema } from './schemas.ts'
import { updateInventory } from './commands.ts'
import { findInventoryItem, listInventory } from './queries.ts'

export const inventoryRoutes: FastifyPluginAsyncTypebox = async function inventoryRoutes (app) {
  app.get('/inventory', {
    schema: {
      operationId: 'listInventory',
      tags: ['inventory'],
      summary: 'List inventory',
      description: 'The stock of all pets that were counted, by pet, a page at a time.',
      querystring: InventoryQuery,
      response: { 200: Type.Array(ref(InventoryItemSchema)) }
    }
  }, async (request, reply) => {
    const { auth: { account }, query } = request
    return sendPage(request, reply, await listInventory(app.read, account, pageRequest(query)))
  })

  app.get('/inventory/:petId', {
    schema: {
      operationId: 'getInventoryItem',
      tags: ['inventory'],
      summary: 'Get the stock of a pet',
      description: 'The inventory entry of one pet; there is none until the pet was first counted.',
      params: InventoryParams,
      response: { 200: ref(InventoryItemSchema) }
    },
    config: { errors: [PetNotFound, InventoryNotFound] }
  }, async (request, reply) => {
    const { auth: { account }, params: { petId } } = request
    const item = await findInventoryItem(app.read, account, petId)
    if (item === undefined) throw new PetNotFound()
    if (item === null) throw new InventoryNotFound()
    return sendRecord(request, reply, item)
  })

  app.patch('/inventory/:petId', {
    schema: {
      operationId: 'updateInventory',
      tags: ['inventory'],
      summary: 'Count the stock of a pet',
      description: 'Sets the count; the first count creates the entry. A count above 0 makes the pet `available`; a count of 0 makes it `pending` while it has open orders, else `sold`. With `If-None-Match: *` it counts only a pet that was never counted.',
      'x-stability': 'experimental',
      params: InventoryParams,
      body: ref(InventoryUpdateSchema),
      response: { 200: ref(InventoryItemSchema) }
    },
    config: { errors: [PetNotFound] }
  }, async (request, reply) => {
    const { auth: { account }, params: { petId }, body: { quantity } } = request
    return sendWriteResult(reply, 200, await app.commit(updateInventory, { account, petId, quantity, conditions: conditionsOf(request) }, writeContext(request)))
  })
}
