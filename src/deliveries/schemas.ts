import { Type, type Static } from '@sinclair/typebox'
import { Timestamp } from '../http/common-schemas.ts'

export const WebhookAttemptSchema = Type.Object({
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
}, { $id: 'WebhookAttempt', description: 'One attempt to deliver an event.' })
export type WebhookAttempt = Static<typeof WebhookAttemptSchema>
