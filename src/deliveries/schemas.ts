import { Type, type Static } from '@sinclair/typebox'
import { Id, ref, Timestamp } from '../http/common-schemas.ts'

const attempt = {
  id: Id('Number of the attempt, from 1 for each webhook', 1),
  eventId: Type.Integer({ format: 'int64', minimum: 0, description: 'Number of the event; 0 for a test', example: 42 }),
  at: Timestamp('Time at which the request was sent'),
  status: Type.Optional(Type.Integer({
    description: 'The HTTP status of the response, if there was one', example: 503
  })),
  error: Type.Optional(Type.String({
    description: 'The reason if there was no response', example: 'The address refused the connection'
  })),
  durationMs: Type.Integer({ minimum: 0, description: 'Duration of the attempt, in milliseconds', example: 12 }),
  nextTryAt: Type.Optional(Timestamp('Due time of the next attempt, if there is one', '2026-11-21T10:00:05.000Z'))
}

export const WebhookAttemptSchema = Type.Object(attempt, {
  $id: 'WebhookAttempt', description: 'One attempt to deliver an event.'
})
export type WebhookAttempt = Static<typeof WebhookAttemptSchema>

export const HeaderFieldSchema = Type.Object({
  name: Type.String({ description: 'The name, as it was sent', example: 'content-type' }),
  value: Type.String({ description: 'The value; secrets are hidden', example: 'text/plain' })
}, { $id: 'HeaderField', description: 'A field of the head of a request or of a response.' })
export type HeaderField = Static<typeof HeaderFieldSchema>

const fields = (description: string) => Type.Array(ref(HeaderFieldSchema), { description })

export const WebhookRequestSchema = Type.Object({
  url: Type.String({ description: 'The address that was called', example: 'https://example.com/hooks/petstore' }),
  fields: fields('The header fields, with the signature'),
  body: Type.Optional(Type.String({
    description: 'The event as JSON text, unless it has expired',
    example: '{"id":0,"type":"webhook.test","timestamp":"2026-11-21T10:00:00.000Z","data":{"webhookId":1}}'
  }))
}, { $id: 'WebhookRequest', description: 'A request that the service sent to a webhook.' })

export const WebhookAnswerSchema = Type.Object({
  fields: fields('The header fields, in their order'),
  body: Type.String({
    description: 'The first 4 KB of the body. What is not UTF-8 becomes U+FFFD', example: 'The queue is full'
  }),
  truncated: Type.Boolean({
    description: 'Whether there was more: header fields beyond 4 KB, or a body that was longer, slow or broken',
    example: false
  })
}, { $id: 'WebhookAnswer', description: 'A response of the receiver of a webhook.' })

export const WebhookAttemptDetailSchema = Type.Object({
  ...attempt,
  request: Type.Optional(ref(WebhookRequestSchema)),
  answer: Type.Optional(ref(WebhookAnswerSchema))
}, {
  $id: 'WebhookAttemptDetail',
  description: 'An attempt with its request, unless it was not sent, and with the response, if there was one.'
})

/** The request and the response of an attempt, as they are stored. The body of the request is the event. */
export interface Exchange {
  request?: { url: string, fields: HeaderField[] }
  answer?: Static<typeof WebhookAnswerSchema>
}
