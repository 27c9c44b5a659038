import { randomBytes } from 'node:crypto'
import type { Stored } from '../answers.ts'
import { etagOf } from '../conditions.ts'
import type { Command } from '../database/commit.ts'
import type { Dialect } from '../database/dialect.ts'
import { enumText, jsonObject, text, time } from '../database/json.ts'
import { pageQuery, type Listing, type Page, type PageRequest } from '../database/page.ts'
import type { Query, Read } from '../database/read.ts'
import type { Message, NewMessage } from './schemas.ts'

const record = (dialect: Dialect): string => jsonObject(dialect, {
  id: text('m.id'),
  message: text('m.message'),
  status: enumText('m.status'),
  createdAt: time('m.created_at')
})

const messageById: Query<{ account: number, id: string }, { version: bigint, record: string }> = {
  name: 'message',
  sql: (dialect) => `
    SELECT i.ord, m.version, ${record(dialect)} AS record
    FROM ${dialect.inputs('i', { ord: 'bigint', account: 'bigint', id: 'text' })}
    JOIN messages m ON m.id = i.id AND m.account_id = i.account`
}

export const messages: Listing = {
  name: 'messages',
  from: 'messages m',
  record,
  filters: {},
  indexes: [{ name: 'messages_account_id_position_idx', columns: ['m.account_id'], position: 'm.position' }]
}

export async function findMessage (read: Read, account: number, id: string): Promise<Stored | undefined> {
  const row = await read(messageById, { account, id })
  return row && { record: row.record, etag: etagOf(row.version) }
}

export async function listMessages (read: Read, account: number, page: PageRequest): Promise<Page> {
  return await read(...pageQuery(messages, page, account)) as Page
}

export const createMessage: Command<{ account: number, message: NewMessage }, Message> = {
  name: 'createMessage',
  async run ({ dialect, newIds, execute, now }, inputs) {
    const positions = await newIds('messages', 'position', inputs.length)
    const created = inputs.map(({ account, message: { message } }, i) => {
      const record: Message = { id: messageId(positions[i]!), message, status: 'queued', createdAt: now }
      return { account, position: positions[i]!, record }
    })
    await execute(`
      INSERT INTO messages (position, id, account_id, message, created_at)
      SELECT i.position, i.id, i.account, i.message, ${dialect.toTime('i."createdAt"')}
      FROM ${dialect.inputs('i', { position: 'bigint', id: 'text', account: 'bigint', message: 'text', createdAt: 'text' })}`,
    created.map(({ account, position, record }) => ({ account, position, ...record })))
    return created.map(({ record, position }) => ({ record, etag: etagOf(1), events: [{ type: 'message.created', data: { message: record }, message: position }] }))
  }
}

/** `msg_`, the position in ten digits of base 36, so that ids sort by time, and 16 that cannot be guessed. */
function messageId (position: number): string {
  const random = [...randomBytes(16)].map((byte) => (byte % 36).toString(36)).join('')
  return `msg_${position.toString(36).padStart(10, '0')}${random}`
}
