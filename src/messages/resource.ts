import * as tables from '../generated/tables.ts'
import type { Resource } from '../resource.ts'
import * as errors from './errors.ts'
import { messageRoutes } from './routes.ts'
import * as schemas from './schemas.ts'

export const messages: Resource = {
  name: 'messages',
  tag: {
    name: 'messages',
    group: 'Platform',
    position: 5,
    description: 'Texts that the service delivers to your webhooks.'
  },
  tables: [tables.messages],
  schemas,
  errors,
  events: schemas.messageEvents,
  routes: messageRoutes
}
