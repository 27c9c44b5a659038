import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { sendRecord } from '../http/responses.ts'
import { InventoryNotFound } from './errors.ts'
import { PetNotFound } from '../pets/errors.ts'
import { arrayOf, ref } from '../http/common-schemas.ts'
import { sendChanged, sendList } from '../http/record-routes.ts'
import { InventoryItemSchema } from '../pets/schemas.ts'
import { InventoryParams, InventoryQuery, InventoryUpdateSchema } from './schemas.ts'
import { updateInventory } from './commands.ts'
import { findInventoryItem, listInventory } from './queries.ts'

export const inventoryRoutes: FastifyPluginAsyncTypebox = async function inventoryRoutes (app) {
  app.get('/inventory', {
    schema: {
      operationId: 'listInventory',
      summary: 'List inventory',
      description: 'Lists the stock of all counted pets by pet id, a page at a time.',
      querystring: InventoryQuery,
      response: { 200: arrayOf(InventoryItemSchema) }
    }
  }, async (request, reply) => await sendList(request, reply, listInventory))

  app.get('/inventory/:petId', {
    schema: {
      operationId: 'getInventoryItem',
      summary: 'Get the stock of a pet',
      description: 'Returns the inventory entry of one pet. A pet has no entry until its first count.',
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
      summary: 'Count the stock of a pet',
      description: 'Sets the stock; the first count creates the entry. A count above 0 makes the pet `available`. A ' +
        'count of 0 makes it `pending` while it has open orders, and otherwise `sold`. With `If-None-Match: *` the ' +
        'request succeeds only for a pet that was never counted.',
      'x-stability': 'experimental',
      params: InventoryParams,
      body: ref(InventoryUpdateSchema),
      response: { 200: ref(InventoryItemSchema) }
    },
    config: { errors: [PetNotFound] }
  }, async (request, reply) => {
    const { params: { petId }, body } = request
    return await sendChanged(request, reply, updateInventory, { petId, ...body })
  })
}
