import { Type, type Static } from '@sinclair/typebox'
import { EventTypeReference } from '../events/schemas.ts'
import {
  NO_ADDITIONAL_PROPERTIES, Id, ListQuery, MergePatch, PageQuery, StringEnum, Timestamp
} from '../http/common-schemas.ts'
import { HTTP_URL_PATTERN } from '../http/http-url.ts'

const ADDRESS = {
  format: 'uri',
  description: 'The http or https address that receives events by POST',
  example: 'https://example.com/hooks/petstore'
}
const url = Type.String({ ...ADDRESS, minLength: 1, maxLength: 2048, pattern: HTTP_URL_PATTERN })
const ENABLED = { description: 'If true, the webhook receives events', example: true }
const enabled = Type.Boolean({
  ...ENABLED, description: `${ENABLED.description}. Deliveries that wait while it is disabled expire after a day`
})
const secret = Type.String({
  description: 'The secret that signs deliveries, as the Standard Webhooks specification says. It is shown only in ' +
    'this response',
  example: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'
})

const events = Type.Array(EventTypeReference, {
  minItems: 1,
  uniqueItems: true,
  description: 'The types of events that the webhook receives',
  example: ['message.created', 'message.delivered']
})

export const NewWebhookSchema = Type.Object({
  url,
  events: Type.Optional(events),
  enabled: Type.Optional(Type.Boolean({ ...ENABLED, description: `${ENABLED.description}. Default: true` }))
}, {
  $id: 'NewWebhook',
  ...NO_ADDITIONAL_PROPERTIES,
  description: 'A webhook to create. It receives every event unless `events` lists types.'
})
export type NewWebhook = Static<typeof NewWebhookSchema>

export const WebhookUpdateSchema = MergePatch('WebhookUpdate', { url, events, enabled })
export type WebhookUpdate = Static<typeof WebhookUpdateSchema>

const webhook = {
  id: Id('Identifier of the webhook', 1),
  url: Type.String(ADDRESS),
  events,
  enabled: Type.Boolean(ENABLED),
  createdAt: Timestamp('Creation time')
}

export const WebhookSchema = Type.Object(webhook, { $id: 'Webhook', description: 'An address that receives events.' })
export type Webhook = Static<typeof WebhookSchema>

export const WebhookWithSecretSchema = Type.Object({ ...webhook, secret }, {
  $id: 'WebhookWithSecret', description: 'A webhook with its new secret.'
})
export type WebhookWithSecret = Static<typeof WebhookWithSecretSchema>

/** Not called WebhookTest: a Java generator would give that name to the test class of Webhook. */
export const TestDeliverySchema = Type.Object({ webhookId: Id('Id of the webhook', 1) }, {
  $id: 'TestDelivery', description: 'A test that the service sends to a webhook.'
})
export type TestDelivery = Static<typeof TestDeliverySchema>

/** Limits the events of one resend, which is one transaction. */
export const MAX_RESENT_EVENTS = 10_000

const EVENT_NUMBER = { format: 'int64', minimum: 1 } as const

export const ResendSchema = Type.Object({
  eventId: Type.Optional(Type.Integer({ ...EVENT_NUMBER, description: 'Only this event', example: 1 })),
  from: Type.Optional(Type.Integer({
    ...EVENT_NUMBER,
    description: `Number of the first event; by default, of the oldest of the ${MAX_RESENT_EVENTS} stored before \`to\``,
    example: 1
  })),
  to: Type.Optional(Type.Integer({
    ...EVENT_NUMBER, description: 'Number of the last event; by default, of the newest', example: 20
  })),
  types: Type.Optional(Type.Array(EventTypeReference, {
    minItems: 1, uniqueItems: true, description: 'Only events of these types', example: ['message.created']
  })),
  only: Type.Optional(StringEnum(['failed'], {
    description: '`failed`: only events that the service has sent and the webhook has not accepted', example: 'failed'
  }))
}, {
  $id: 'Resend',
  ...NO_ADDITIONAL_PROPERTIES,
  minProperties: 1,
  description: 'The events to send again: those that meet each member.',
  example: { eventId: 1 }
})
export type Resend = Static<typeof ResendSchema>

export const ResentEventsSchema = Type.Object({
  queued: Type.Integer({ minimum: 0, description: 'Number of events that the service sends again', example: 1 })
}, { $id: 'ResentEvents', description: 'Events that the service sends to a webhook again.' })
export type ResentEvents = Static<typeof ResentEventsSchema>

export const WebhookParams = Type.Object({ webhookId: Id('Id of the webhook', 1) }, NO_ADDITIONAL_PROPERTIES)

export const WebhookQuery = ListQuery({})

export const AttemptParams = Type.Object({
  webhookId: Id('Id of the webhook', 1), attemptId: Id('Id of the attempt', 1)
}, NO_ADDITIONAL_PROPERTIES)

export const AttemptQuery = Type.Object({
  eventId: Type.Optional(Type.Integer({
    format: 'int64', minimum: 0, description: 'Only attempts for this event; 0 for tests', example: 1
  })),
  status: Type.Optional(Type.Integer({
    minimum: 100, maximum: 599, description: 'Only attempts with a response of this status', example: 204
  })),
  ...PageQuery
}, NO_ADDITIONAL_PROPERTIES)
