import * as tables from '../generated/tables.ts'
import type { Resource } from '../resource.ts'
import * as errors from './errors.ts'
import { orderRoutes } from './routes.ts'
import * as schemas from './schemas.ts'

export const orders: Resource = {
  name: 'orders',
  tag: { name: 'orders', group: 'Store', position: 3, description: 'Orders for units of a pet.' },
  tables: [tables.orders],
  schemas,
  errors,
  events: schemas.orderEvents,
  routes: orderRoutes
}
