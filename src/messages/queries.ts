import type { Dialect } from '../database/dialect.ts'
import { jsonObject } from '../database/sql/json-object.ts'
import type { ListDefinition } from '../database/sql/keyset-pagination.ts'
import { findRecord, listOf, listRecords, membersOf } from '../database/sql/record-queries.ts'
import { messages } from '../generated/tables.ts'
import { MessageSchema } from './schemas.ts'

/** Returns an SQL expression for the JSON text of a message in a table or under an alias. */
export const messageRecord = (dialect: Dialect, alias: string): string =>
  jsonObject(dialect, membersOf(messages, MessageSchema, alias))

/** A message has up to 10,000 characters. A control character takes 6 bytes in JSON, and the other fields take 200. */
const MAX_MESSAGE_BYTES = 60_200

export const messageList: ListDefinition = {
  ...listOf(messages, MessageSchema),
  recordBytes: {
    stored: 'octet_length(r.message)',
    serialized: (dialect) => `octet_length(${dialect.quote('r.message')})`,
    max: MAX_MESSAGE_BYTES
  }
}

export const findMessage = findRecord<string>(messages, MessageSchema, { id: 'id' })
export const listMessages = listRecords(messageList)
