import * as tables from '../generated/tables.ts'
import type { Resource } from '../resource.ts'
import * as errors from './errors.ts'
import { inventoryRoutes } from './routes.ts'
import * as schemas from './schemas.ts'

export const inventory: Resource = {
  name: 'inventory',
  tag: { name: 'inventory', group: 'Store', position: 4, description: 'The stock of each pet.' },
  tables: [tables.inventoryItems],
  schemas,
  errors,
  events: schemas.inventoryEvents,
  routes: inventoryRoutes
}
