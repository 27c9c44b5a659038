import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { arrayOf, NoContent, ref } from '../http/common-schemas.ts'
import { sendChanged, sendCreated, sendFound, sendList } from '../http/record-routes.ts'
import { CategoryInUse, CategoryNotFound } from './errors.ts'
import { CategoryParams, CategoryQuery, CategorySchema, CategoryUpdateSchema, NewCategorySchema } from './schemas.ts'
import { createCategory, deleteCategory, updateCategory } from './commands.ts'
import { findCategory, listCategories } from './queries.ts'

export const categoryRoutes: FastifyPluginAsyncTypebox = async function categoryRoutes (app) {
  app.get('/categories', {
    schema: {
      operationId: 'listCategories',
      summary: 'List categories',
      description: 'Lists categories by id, a page at a time.',
      querystring: CategoryQuery,
      response: { 200: arrayOf(CategorySchema) }
    }
  }, async (request, reply) => await sendList(request, reply, listCategories))

  app.post('/categories', {
    schema: {
      operationId: 'createCategory',
      summary: 'Add a category',
      description: 'Adds a category. Its name need not be unique.',
      body: ref(NewCategorySchema),
      response: { 201: ref(CategorySchema) }
    }
  }, async (request, reply) => await sendCreated(request, reply, createCategory, { category: request.body }))

  app.get('/categories/:categoryId', {
    schema: {
      operationId: 'getCategory',
      summary: 'Get a category',
      description: 'Returns one category.',
      params: CategoryParams,
      response: { 200: ref(CategorySchema) }
    },
    config: { errors: [CategoryNotFound] }
  }, async (request, reply) =>
    await sendFound(request, reply, findCategory, request.params.categoryId, CategoryNotFound))

  app.patch('/categories/:categoryId', {
    schema: {
      operationId: 'updateCategory',
      summary: 'Change a category',
      description: 'A JSON merge patch; `description: null` clears the description.',
      params: CategoryParams,
      body: ref(CategoryUpdateSchema),
      response: { 200: ref(CategorySchema) }
    },
    config: { errors: [CategoryNotFound] }
  }, async (request, reply) =>
    await sendChanged(request, reply, updateCategory, { patch: request.body, ...request.params }))

  app.delete('/categories/:categoryId', {
    schema: {
      operationId: 'deleteCategory',
      summary: 'Delete a category',
      description: 'Deletes a category that has no pets.',
      params: CategoryParams,
      response: { 204: NoContent }
    },
    config: { errors: [CategoryNotFound, CategoryInUse], examples: { categoryId: 6 } }
  }, async (request, reply) => await sendChanged(request, reply, deleteCategory, request.params))
}
