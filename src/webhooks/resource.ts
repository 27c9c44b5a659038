import type { Config } from '../config.ts'
import * as deliverySchemas from '../deliveries/schemas.ts'
import * as tables from '../generated/tables.ts'
import type { Resource } from '../resource.ts'
import * as errors from './errors.ts'
import { webhookRoutes } from './routes.ts'
import * as schemas from './schemas.ts'

/** @param eventTypes all types of events that a webhook can receive */
export function webhooks ({ WEBHOOKS_ALLOW_PRIVATE }: Config, eventTypes: readonly string[]): Resource {
  return {
    name: 'webhooks',
    tag: { name: 'webhooks', group: 'Platform', position: 7, description: 'Addresses that receive events.' },
    tables: [tables.webhooks, tables.deliveries, tables.webhookAttempts],
    schemas: { ...schemas, ...deliverySchemas },
    errors,
    routes: webhookRoutes({ eventTypes, allowPrivate: WEBHOOKS_ALLOW_PRIVATE })
  }
}
