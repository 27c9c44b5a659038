import { Type, type Static } from '@sinclair/typebox'
import { NO_ADDITIONAL_PROPERTIES, StringEnum, PageQuery, SortQuery, Text, Timestamp } from '../http/common-schemas.ts'

const message = Text(1, 10000, 'The submitted text', 'Hello')
const id = Type.String({ pattern: '^msg_[0-9a-z]{26}$', description: 'Identifier of the message; ids sort by time', example: 'msg_000000000g4jm1zq7c8x0v2ykp' })

export const NewMessageSchema = Type.Object({ message }, { $id: 'NewMessage', ...NO_ADDITIONAL_PROPERTIES, description: 'A text to deliver.' })
export type NewMessage = Static<typeof NewMessageSchema>

export const MessageSchema = Type.Object({
  id,
  message,
  status: StringEnum(['queued', 'processing', 'delivered', 'failed'], { description: 'Processing status; the last two are final', example: 'queued' }),
  createdAt: Timestamp('Creation time')
}, { $id: 'Message', description: 'A message and how far it came.' })
export type Message = Static<typeof MessageSchema>

export const MessageParams = Type.Object({ messageId: id }, NO_ADDITIONAL_PROPERTIES)

export const MessageQuery = Type.Object({ ...PageQuery, ...SortQuery }, NO_ADDITIONAL_PROPERTIES)
