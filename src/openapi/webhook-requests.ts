import type { Parameter, Schema } from './document.ts'
import { exampleOf } from './document.ts'

/** The event that `testWebhook` sends. No feed contains it. */
export const WebhookTestEventSchema: Schema = {
  type: 'object',
  description: 'A test that `testWebhook` sends.',
  required: ['id', 'type', 'timestamp', 'data'],
  properties: {
    id: { type: 'integer', enum: [0], description: 'Tests have no number' },
    type: { type: 'string', enum: ['webhook.test'], description: 'Type of the event' },
    timestamp: { type: 'string', format: 'date-time', example: '2026-11-21T10:00:00.000Z' },
    data: {
      type: 'object',
      required: ['webhookId'],
      properties: { webhookId: { type: 'integer', format: 'int64', minimum: 1, example: 1 } },
      additionalProperties: true
    }
  },
  example: { id: 0, type: 'webhook.test', timestamp: '2026-11-21T10:00:00.000Z', data: { webhookId: 1 } },
  additionalProperties: true
}

const header = (name: string, description: string, example: string): Parameter =>
  ({ name, in: 'header', required: true, description, schema: { type: 'string' }, example })

/** The header fields of a request to a webhook, as the Standard Webhooks specification names them. */
export const SIGNATURE_HEADERS: Record<string, Parameter> = {
  WebhookIdHeader: header(
    'webhook-id', 'Identifies the event beyond the account. A repeated request has the same.', 'evt_1_42'
  ),
  WebhookTimestampHeader: header(
    'webhook-timestamp', 'Time at which the request was sent, in seconds since 1970.', '1795255200'
  ),
  WebhookSignatureHeader: header(
    'webhook-signature',
    'Signatures of `id.timestamp.body` with the secrets of the webhook, separated by spaces: `v1,` and a base64 text.',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4='
  )
}

/** Returns the `webhooks` of an OpenAPI 3.1 document: for each type of event the request that a receiver gets. */
export function eventWebhooks (schemas: Record<string, Schema>): Record<string, object> {
  const types = [...schemas['EventType']?.enum ?? [], 'webhook.test'].map(String)
  return Object.fromEntries(types.map((type) => [type, { post: requestOf(schemas, type) }]))
}

function requestOf (schemas: Record<string, Schema>, type: string): object {
  const name = type.split('.').map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  const schema = { $ref: `#/components/schemas/${name}Event` }
  return {
    operationId: `receive${name}`,
    tags: ['webhooks'],
    summary: `Receive ${type}`,
    description: 'The service sends this request to each enabled webhook that has subscribed to the type, until the ' +
      'receiver responds with a 2xx status, for about a day.',
    security: [],
    parameters: Object.keys(SIGNATURE_HEADERS).map((header) => ({ $ref: `#/components/parameters/${header}` })),
    requestBody: {
      required: true,
      content: { 'application/json': { schema, example: exampleOf({ components: { schemas, headers: {} } }, schema) } }
    },
    responses: {
      '2XX': { description: 'The receiver has the event.' },
      410: { description: 'Disables the webhook.' },
      '4XX': { description: 'The service tries again later.' },
      '5XX': { description: 'The service tries again later, and honours `Retry-After`.' }
    }
  }
}
