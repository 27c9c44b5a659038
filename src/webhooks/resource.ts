import type { Config } from '../config.ts'
import type { Resource } from '../database/resource.ts'
import { deliveryTable } from '../deliveries/enqueue.ts'
import { WebhookAttemptSchema } from '../deliveries/schemas.ts'
import * as errors from './errors.ts'
import { webhookTable } from './queries.ts'
import { webhookRoutes } from './routes.ts'
import { webhookSchemas } from './schemas.ts'

/** @param eventTypes all types of events that a webhook can receive */
export function webhooks ({ WEBHOOKS_ALLOW_PRIVATE }: Config, eventTypes: readonly string[]): Resource {
  const schemas = webhookSchemas(eventTypes)
  return {
    name: 'webhooks',
    tag: { name: 'webhooks', group: 'Platform', position: 7, description: 'Addresses that receive events.' },
    tables: [webhookTable, deliveryTable],
    schemas: [...Object.values(schemas), WebhookAttemptSchema],
    errors,
    routes: webhookRoutes({ schemas, eventTypes, allowPrivate: WEBHOOKS_ALLOW_PRIVATE })
  }
}
