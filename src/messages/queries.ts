import type { Dialect } from '../database/dialect.ts'
import { enumText, jsonObject, text, time, type Member } from '../database/sql/json-object.ts'
import type { ListDefinition } from '../database/sql/keyset-pagination.ts'
import { findRecord, listRecords } from '../database/sql/record-queries.ts'

const membersOf = (alias: string): Record<string, Member> => ({
  id: text(`${alias}.id`),
  message: text(`${alias}.message`),
  status: enumText(`${alias}.status`),
  createdAt: time(`${alias}.created_at`)
})

/** Returns an SQL expression for the JSON text of a message in a table or under an alias. */
export const messageRecord = (dialect: Dialect, alias: string): string => jsonObject(dialect, membersOf(alias))

/** A message has up to 10,000 characters. A control character takes 6 bytes in JSON, and the other fields take 200. */
const MAX_MESSAGE_BYTES = 60_200

export const messageList: ListDefinition = {
  name: 'messages',
  from: 'messages m',
  record: (dialect) => messageRecord(dialect, 'm'),
  filters: {},
  recordBytes: {
    stored: 'octet_length(m.message)',
    serialized: (dialect) => `octet_length(${dialect.quote('m.message')})`,
    max: MAX_MESSAGE_BYTES
  },
  indexes: [{ name: 'messages_account_id_position_idx', columns: ['m.account_id'], position: 'm.position' }]
}

export const findMessage = findRecord<string>({
  from: 'messages m', members: membersOf('m'), id: 'm.id', idType: 'text'
})
export const listMessages = listRecords(messageList)
