import { Type, type Static } from '@sinclair/typebox'
import { NO_ADDITIONAL_PROPERTIES, Id, PageQuery, SortQuery, StringEnum, Timestamp } from '../http/common-schemas.ts'

const url = Type.String({
  format: 'uri',
  minLength: 1,
  maxLength: 2048,
  description: 'The http or https address that receives events by POST',
  example: 'https://example.com/hooks/petstore'
})
const ENABLED = {
  description: 'If true, the webhook receives events. Deliveries that wait while it is disabled expire after a day',
  example: true
}
const enabled = Type.Boolean(ENABLED)
const secret = Type.String({
  description: 'The secret that signs deliveries, as the Standard Webhooks specification says. It is shown only in ' +
    'this response',
  example: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'
})

/** Returns the named schemas of webhooks. They depend on the types of events that the resources define. */
export function webhookSchemas (eventTypes: readonly string[]) {
  const events = Type.Array(StringEnum(eventTypes, { description: 'A type of event', example: 'message.created' }), {
    minItems: 1,
    uniqueItems: true,
    description: 'The types of events that the webhook receives',
    example: ['message.created', 'message.delivered']
  })
  const webhook = {
    id: Id('Identifier of the webhook', 4), url, events, enabled, createdAt: Timestamp('Creation time')
  }
  return {
    NewWebhookSchema: Type.Object({
      url,
      events: Type.Optional(events),
      enabled: Type.Optional(Type.Boolean({ ...ENABLED, default: true }))
    }, {
      $id: 'NewWebhook',
      ...NO_ADDITIONAL_PROPERTIES,
      description: 'A webhook to create. It receives every event unless `events` lists types.'
    }),
    WebhookUpdateSchema: Type.Partial(Type.Object({ url, events, enabled }), {
      $id: 'WebhookUpdate',
      ...NO_ADDITIONAL_PROPERTIES,
      description: 'A JSON merge patch (RFC 7396) with the fields to change.'
    }),
    WebhookSchema: Type.Object(webhook, { $id: 'Webhook', description: 'An address that receives events.' }),
    WebhookTestSchema: Type.Object({ webhookId: webhook.id }, {
      $id: 'WebhookTest', description: 'A test that the service sends.'
    }),
    WebhookWithSecretSchema: Type.Object({ ...webhook, secret }, {
      $id: 'WebhookWithSecret', description: 'A webhook with its new secret.'
    })
  }
}

export type WebhookSchemas = ReturnType<typeof webhookSchemas>
export type NewWebhook = Static<WebhookSchemas['NewWebhookSchema']>
export type WebhookUpdate = Static<WebhookSchemas['WebhookUpdateSchema']>
export type Webhook = Static<WebhookSchemas['WebhookSchema']>
export type WebhookTest = Static<WebhookSchemas['WebhookTestSchema']>
export type WebhookWithSecret = Static<WebhookSchemas['WebhookWithSecretSchema']>

export const WebhookParams = Type.Object({ webhookId: Id('Id of the webhook', 4) }, NO_ADDITIONAL_PROPERTIES)

export const WebhookQuery = Type.Object({ ...PageQuery, ...SortQuery }, NO_ADDITIONAL_PROPERTIES)
