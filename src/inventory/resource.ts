import type { Resource } from '../database/resource.ts'
import { namedSchemas } from '../http/common-schemas.ts'
import * as errors from './errors.ts'
import { inventoryTable } from './queries.ts'
import { inventoryRoutes } from './routes.ts'
import * as schemas from './schemas.ts'

export const inventory: Resource = {
  name: 'inventory',
  tag: { name: 'inventory', group: 'Store', position: 4, description: 'The stock of each pet.' },
  tables: [inventoryTable],
  schemas: namedSchemas(schemas),
  errors,
  events: schemas.inventoryEvents,
  routes: inventoryRoutes
}
