import * as tables from '../generated/tables.ts'
import type { Resource } from '../resource.ts'
import * as errors from './errors.ts'
import { categoryRoutes } from './routes.ts'
import * as schemas from './schemas.ts'

export const categories: Resource = {
  name: 'categories',
  tag: { name: 'categories', group: 'Pets', position: 2, description: 'The categories that pets belong to.' },
  tables: [tables.categories],
  schemas,
  errors,
  events: schemas.categoryEvents,
  routes: categoryRoutes
}
