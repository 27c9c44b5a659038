import * as tables from '../generated/tables.ts'
import type { Resource } from '../resource.ts'
import * as errors from './errors.ts'
import { accountRoutes } from './routes.ts'
import * as schemas from './schemas.ts'

export const accounts: Resource = {
  name: 'accounts',
  tag: {
    name: 'accounts',
    group: 'Platform',
    position: 8,
    description: 'Your account, which is your store, and its API keys.'
  },
  tables: [tables.apiKeys],
  schemas,
  errors,
  routes: accountRoutes
}
