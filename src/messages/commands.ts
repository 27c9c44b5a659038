import { randomBytes } from 'node:crypto'
import { etagOf } from '../http/conditional-requests.ts'
import type { Command } from '../database/group-commit/command.ts'
import type { Dialect } from '../database/dialect.ts'
import type { Table } from '../database/sql/bulk-insert.ts'
import { enumText, jsonObject, text, time, type SerializedRecord } from '../database/sql/json-object.ts'
import { pageQuery, type ListDefinition, type Page, type PageRequest } from '../database/sql/keyset-pagination.ts'
import type { Query, Read } from '../database/read-batching.ts'
import type { Message, NewMessage } from './schemas.ts'

export const recordOf = (dialect: Dialect, table: string): string => jsonObject(dialect, {
  id: text(`${table}.id`),
  message: text(`${table}.message`),
  status: enumText(`${table}.status`),
  createdAt: time(`${table}.created_at`)
})

const record = (dialect: Dialect): string => recordOf(dialect, 'm')

const messageById: Query<{ account: number, id: string }, { version: bigint, record: string }> = {
  sql: (dialect) => `
    SELECT i.ord, m.version, ${record(dialect)} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: 'text' })}
    JOIN messages m ON m.id = i.id AND m.account_id = i.account`
}

export const messages: ListDefinition = {
  name: 'messages',
  from: 'messages m',
  record,
  filters: {},
  indexes: [{ name: 'messages_account_id_position_idx', columns: ['m.account_id'], position: 'm.position' }]
}

export async function findMessage (read: Read, account: number, id: string): Promise<SerializedRecord | undefined> {
  const row = await read(messageById, { account, id })
  return row && { record: row.record, etag: etagOf(row.version) }
}

export async function listMessages (read: Read, account: number, page: PageRequest): Promise<Page> {
  return await read(...pageQuery(messages, page, account)) as Page
}

const table: Table = {
  name: 'messages',
  id: 'position',
  columns: { id: 'text', account_id: 'bigint', message: 'text', created_at: 'time' }
}

export const createMessage: Command<{ account: number, message: NewMessage }, Message> = {
  name: 'createMessage',
  creates: table,
  async run ({ allocateIds, insert, now }, inputs) {
    const positions = await allocateIds(table, inputs.length)
    const random = randomBytes(inputs.length * SECRET_LENGTH)
    const created = inputs.map(({ account, message: { message } }, i) => {
      const record: Message = { id: messageId(positions[i]!, random.subarray(i * SECRET_LENGTH, (i + 1) * SECRET_LENGTH)), message, status: 'queued', createdAt: now }
      return { account, position: positions[i]!, record }
    })
    insert(table, created.map(({ account, position, record: { id, message } }) => ({ position, id, account_id: account, message, created_at: now })))
    return created.map(({ record, position }) => ({ record, etag: etagOf(1), events: [{ type: 'message.created', data: { message: record }, message: position }] }))
  }
}

/** Digits of an id that cannot be guessed. */
const SECRET_LENGTH = 16
const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'

/** `msg_`, the position in ten digits of base 36, so that ids sort by time, and a digit for each random byte. */
function messageId (position: number, random: Uint8Array): string {
  let id = `msg_${position.toString(36).padStart(10, '0')}`
  for (const byte of random) id += DIGITS[byte % DIGITS.length]
  return id
}
