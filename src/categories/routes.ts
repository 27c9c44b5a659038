import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { pageRequest } from '../http/pagination.ts'
import { sendWriteResult, sendPage, sendRecord } from '../http/responses.ts'
import { conditionsOf } from '../http/conditional-requests.ts'
import { CategoryInUse, CategoryNotFound } from './errors.ts'
import { writeContext } from '../http/idempotency.ts'
import { NoContent, ref } from '../http/common-schemas.ts'
import { CategoryParams, CategoryQuery, CategorySchema, CategoryUpdateSchema, NewCategorySchema } from './schemas.ts'
import { createCategory, deleteCategory, updateCategory } from './commands.ts'
import { findCategory, listCategories } from './queries.ts'

export const categoryRoutes: FastifyPluginAsyncTypebox = async function categoryRoutes (app) {
  app.get('/categories', {
    schema: {
      operationId: 'listCategories',
      tags: ['categories'],
      summary: 'List categories',
      description: 'Lists categories by id, a page at a time.',
      querystring: CategoryQuery,
      response: { 200: Type.Array(ref(CategorySchema)) }
    }
  }, async (request, reply) => {
    const { auth: { account }, query } = request
    return sendPage(request, reply, await listCategories(app.read, account, pageRequest(query)))
  })

  app.post('/categories', {
    schema: {
      operationId: 'createCategory',
      tags: ['categories'],
      summary: 'Add a category',
      description: 'Adds a category. Its name need not be unique.',
      body: ref(NewCategorySchema),
      response: { 201: ref(CategorySchema) }
    }
  }, async (request, reply) => {
    const { body: category } = request
    const created = await app.commit(createCategory, { category }, writeContext(request))
    return sendWriteResult(reply, 201, created, `/categories/${created.record.id}`)
  })

  app.get('/categories/:categoryId', {
    schema: {
      operationId: 'getCategory',
      tags: ['categories'],
      summary: 'Get a category',
      description: 'Returns one category.',
      params: CategoryParams,
      response: { 200: ref(CategorySchema) }
    },
    config: { errors: [CategoryNotFound] }
  }, async (request, reply) => {
    const { auth: { account }, params: { categoryId } } = request
    const category = await findCategory(app.read, account, categoryId)
    if (category === undefined) throw new CategoryNotFound()
    return sendRecord(request, reply, category)
  })

  app.patch('/categories/:categoryId', {
    schema: {
      operationId: 'updateCategory',
      tags: ['categories'],
      summary: 'Change a category',
      description: 'A JSON merge patch; `description: null` clears the description.',
      params: CategoryParams,
      body: ref(CategoryUpdateSchema),
      response: { 200: ref(CategorySchema) }
    },
    config: { errors: [CategoryNotFound] }
  }, async (request, reply) => {
    const { params: { categoryId }, body: patch } = request
    const input = { categoryId, patch, conditions: conditionsOf(request) }
    return sendWriteResult(reply, 200, await app.commit(updateCategory, input, writeContext(request)))
  })

  app.delete('/categories/:categoryId', {
    schema: {
      operationId: 'deleteCategory',
      tags: ['categories'],
      summary: 'Delete a category',
      description: 'Deletes a category that has no pets.',
      params: CategoryParams,
      response: { 204: NoContent }
    },
    config: { errors: [CategoryNotFound, CategoryInUse], examples: { categoryId: 6 } }
  }, async (request, reply) => {
    const { params: { categoryId } } = request
    const input = { categoryId, conditions: conditionsOf(request) }
    return sendWriteResult(reply, 204, await app.commit(deleteCategory, input, writeContext(request)))
  })
}
