import { Type, type Static } from '@sinclair/typebox'
import { WebhookAttemptSchema } from '../deliveries/schemas.ts'
import { EVENT_TYPES } from '../events/schemas.ts'
import { NO_ADDITIONAL_PROPERTIES, Id, StringEnum, PageQuery, SortQuery, Timestamp, ref } from '../http/common-schemas.ts'

const url = Type.String({
  format: 'uri',
  minLength: 1,
  maxLength: 2048,
  pattern: '^https?://[!-~]+$',
  description: 'Where events are sent by POST: an http or https address',
  example: 'https://example.com/hooks/petstore'
})
const events = Type.Array(StringEnum(EVENT_TYPES, { description: 'A type of event', example: 'message.created' }), {
  minItems: 1,
  uniqueItems: true,
  description: 'The types of events it is sent',
  example: ['message.created', 'message.delivered']
})
const ENABLED = { description: 'Whether it is sent anything; what waits while it is not is given up after a day', example: true }
const enabled = Type.Boolean(ENABLED)

export const NewWebhookSchema = Type.Object({
  url,
  events: Type.Optional(events),
  enabled: Type.Optional(Type.Boolean({ ...ENABLED, default: true }))
}, { $id: 'NewWebhook', ...NO_ADDITIONAL_PROPERTIES, description: 'An address that shall hear of events: of all, unless `events` names some.' })
export type NewWebhook = Static<typeof NewWebhookSchema>

export const WebhookUpdateSchema = Type.Partial(Type.Object({ url, events, enabled }), {
  $id: 'WebhookUpdate',
  ...NO_ADDITIONAL_PROPERTIES,
  description: 'A merge patch of a webhook (RFC 7396): the fields to change.'
})
export type WebhookUpdate = Static<typeof WebhookUpdateSchema>

const webhook = { id: Id('Identifier of the webhook', 4), url, events, enabled, createdAt: Timestamp('When the webhook was made') }

export const WebhookSchema = Type.Object({
  ...webhook,
  attempts: Type.Optional(Type.Array(ref(WebhookAttemptSchema), { description: 'The last 20 attempts, newest first; only where one webhook is read' }))
}, { $id: 'Webhook', description: 'An address that hears of events.' })
export type Webhook = Static<typeof WebhookSchema>

export const WebhookWithSecretSchema = Type.Object({
  ...webhook,
  secret: Type.String({ description: 'What its deliveries are signed with, by the Standard Webhooks specification. Shown this once', example: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD' })
}, { $id: 'WebhookWithSecret', description: 'A webhook with its new secret.' })
export type WebhookWithSecret = Static<typeof WebhookWithSecretSchema>

export const WebhookParams = Type.Object({ webhookId: Id('Id of the webhook', 4) }, NO_ADDITIONAL_PROPERTIES)

export const WebhookQuery = Type.Object({ ...PageQuery, ...SortQuery }, NO_ADDITIONAL_PROPERTIES)
