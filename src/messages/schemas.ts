import { Type, type Static } from '@sinclair/typebox'
import { defineEvents } from '../events/define-events.ts'
import { NO_ADDITIONAL_PROPERTIES, ListQuery, ref, StringEnum, Text, Timestamp } from '../http/common-schemas.ts'
import { describedPattern } from '../http/validation-messages.ts'

const message = Text(1, 10000, 'The submitted text', 'Hello')
const id = Type.String({
  pattern: describedPattern('^msg_[0-9a-z]{26}$', 'be msg_ and 26 characters 0-9 and a-z'),
  description: 'Identifier of the message; ids sort by time',
  example: 'msg_0000000001k7c2q9x4v0ayzr3m'
})

export const NewMessageSchema = Type.Object({ message }, {
  $id: 'NewMessage', ...NO_ADDITIONAL_PROPERTIES, description: 'A message to send.'
})
export type NewMessage = Static<typeof NewMessageSchema>

/** @public A component of the document: `namedSchemas` finds it. */
export const MessageStatusSchema = StringEnum(['queued', 'processing', 'delivered', 'failed'], {
  $id: 'MessageStatus',
  description: 'Processing status of a message; `delivered` and `failed` are final.',
  example: 'queued'
})

export const MessageSchema = Type.Object({
  id,
  message,
  status: ref(MessageStatusSchema),
  createdAt: Timestamp('Creation time')
}, { $id: 'Message', description: 'A message and its processing status.' })
export type Message = Static<typeof MessageSchema>

const data = { message: ref(MessageSchema) }

const EXAMPLE = { id: 'msg_0000000001k7c2q9x4v0ayzr3m', message: 'Hello', createdAt: '2026-11-21T10:00:00.000Z' }

export const messageEvents = defineEvents('message', {
  created: data, processing: data, delivered: data, failed: data
}, {
  processing: { message: { ...EXAMPLE, status: 'processing' } },
  delivered: { message: { ...EXAMPLE, status: 'delivered' } },
  failed: { message: { ...EXAMPLE, status: 'failed' } }
})

export const MessageParams = Type.Object({ messageId: id }, NO_ADDITIONAL_PROPERTIES)

export const MessageQuery = ListQuery({})
