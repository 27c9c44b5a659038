import { randomBytes } from 'node:crypto'
import { etagOf } from '../http/conditional-requests.ts'
import type { Command, NewEvent } from '../database/group-commit/command.ts'
import type { Dialect } from '../database/dialect.ts'
import type { Table } from '../database/sql/bulk-insert.ts'
import { enumText, jsonObject, text, time, type SerializedRecord } from '../database/sql/json-object.ts'
import { pageQuery, type ListDefinition, type Page, type PageRequest } from '../database/sql/keyset-pagination.ts'
import type { Query, Read } from '../database/read-batching.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import { nextMessageStatus, type MessageProgress, type DeliveryOutcome } from './rules.ts'
import type { Message, NewMessage } from './schemas.ts'

const recordOf = (dialect: Dialect, table: string): string => jsonObject(dialect, {
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

/** Messages settled in one statement at most. */
const SETTLE_SIZE = 1_000

/**
 * Delivers messages that no webhook is asked about; `true` when there may be more. `upTo` is the position of one that
 * was committed: what the same transaction has created is not known to wait for nobody.
 */
export const deliverUnsubscribedMessages: Command<{ upTo: number }, boolean> = {
  name: 'settleMessages',
  async run ({ dialect, query }, inputs) {
    const settled = await query<{ position: number, account: number, record: string }>(`
      UPDATE messages SET status = ${dialect.toEnum("'delivered'", 'message_status')}, version = version + 1
      WHERE position IN (
        SELECT m.position FROM messages m WHERE m.status = 'queued' AND m.waiting = 0
          AND m.position <= (SELECT max(i."upTo") FROM ${dialect.jsonRows('i', { upTo: 'bigint' })})
        ORDER BY m.position LIMIT ${SETTLE_SIZE} ${dialect.forUpdateSkipLocked})
      RETURNING position, account_id AS account, ${recordOf(dialect, 'messages')} AS record`, inputs)
    settled.sort((a, b) => a.position - b.position)
    const events = settled.map(({ account, record }) => eventOf('message.delivered', account, JSON.parse(record) as Message))
    return inputs.map((_input, i) => ({ record: settled.length === SETTLE_SIZE, events: i === 0 ? events : [] }))
  }
}

/** What happened to deliveries of messages, in order. The group holds the webhooks' locks. */
export async function updateMessageStatuses ({ dialect, query, execute }: Transaction, steps: Array<{ position: number, step: DeliveryOutcome }>): Promise<NewEvent[]> {
  if (steps.length === 0) return []
  const rows = await query<MessageProgress & { position: number, account: number, version: number, record: string }>(`
    SELECT m.position, m.account_id AS account, ${dialect.fromEnum('m.status')} AS status, m.waiting, m.version, ${record(dialect)} AS record
    FROM messages m WHERE m.position IN (SELECT i.position FROM ${dialect.jsonRows('i', { position: 'bigint' })})
    ORDER BY m.position ${dialect.forUpdate}`, distinct(steps.map(({ position }) => ({ position }))))
  const messages = new Map(rows.map((row) => [row.position, { ...row, before: row.status }]))
  const changed = new Set<MessageProgress & { position: number, version: number }>()
  for (const { position, step } of steps) {
    const message = messages.get(position)
    if (message === undefined) continue
    const after = nextMessageStatus(message, step)
    if (after.status === message.status && after.waiting === message.waiting) continue
    Object.assign(message, after, { version: message.version + (after.status === message.status ? 0 : 1) })
    changed.add(message)
  }
  await execute(`
    UPDATE messages SET status = ${dialect.toEnum('i.status', 'message_status')}, waiting = i.waiting, version = i.version
    FROM ${dialect.jsonRows('i', { position: 'bigint', status: 'text', waiting: 'bigint', version: 'bigint' })}
    WHERE messages.position = i.position`, [...changed].map(({ position, status, waiting, version }) => ({ position, status, waiting, version })))
  return [...messages.values()].flatMap(({ account, before, status, record }) => {
    if (status === before || (status !== 'delivered' && status !== 'failed')) return []
    return [eventOf(`message.${status}`, account, { ...JSON.parse(record) as Message, status })]
  })
}

function eventOf (type: string, account: number, message: Message): NewEvent {
  return { type, account, data: { message } }
}
