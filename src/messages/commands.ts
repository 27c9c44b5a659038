import { randomBytes } from 'node:crypto'
import { etagOf } from '../database/entity-tag.ts'
import type { Command } from '../database/group-commit/command.ts'
import { jsonMembers } from '../database/sql/json-object.ts'
import { messageTable } from './queries.ts'
import { messageEvents, type Message, type NewMessage } from './schemas.ts'

interface NewMessageInput {
  account: number
  message: NewMessage
  /** The id of a message whose id must be known before. */
  id?: string
}

export const createMessage: Command<NewMessageInput, Message> = {
  name: 'createMessage',
  creates: messageTable,
  fastPath: {
    inputs: { message: 'text', secret: 'text', fields: 'text' },
    inputOf ({ message: { message }, id }, createdAt) {
      if (id !== undefined) return undefined
      const fields = jsonMembers({ message, status: 'queued', createdAt })
      return { message, secret: secretOf(randomBytes(SECRET_LENGTH)), fields }
    },
    steps: (dialect) => [
      {
        name: 'next',
        compute: { position: dialect.nextId(messageTable.name, messageTable.id) },
        columns: { position: 'bigint' }
      },
      {
        name: 'made',
        insert: 'messages',
        values: {
          position: '@next.position',
          id: `'msg_' || ${base36Sql('@next.position', POSITION_LENGTH)} || @secret`,
          account_id: '@account',
          message: '@message',
          created_at: dialect.toTime('@now')
        },
        columns: { id: 'text' }
      }
    ],
    event: {
      type: messageEvents.created.type,
      data: '{"message":{"id":"@made.id",@fields}}',
      isTracked: true
    },
    resultOf: ({ message: { message } }, id, createdAt) =>
      ({ record: { id: String(id), message, status: 'queued', createdAt }, etag: etagOf(1) })
  },
  async run ({ allocateIds, insert, now }, inputs) {
    const positions = await allocateIds(messageTable, inputs.length)
    const random = randomBytes(inputs.length * SECRET_LENGTH)
    const created = inputs.map(({ account, message: { message }, id: knownId }, i) => {
      const id = knownId ?? messageId(positions[i]!, random.subarray(i * SECRET_LENGTH, (i + 1) * SECRET_LENGTH))
      const record: Message = { id, message, status: 'queued', createdAt: now(account) }
      return { account, position: positions[i]!, record }
    })
    insert(messageTable, created.map(({ account, position, record: { id, message, createdAt } }) =>
      ({ position, id, account_id: account, message, created_at: createdAt })))
    return created.map(({ record, position }) => ({
      record, etag: etagOf(1), events: [{ ...messageEvents.created({ message: record }), tracks: position }]
    }))
  }
}

/** Number of digits of the position. */
const POSITION_LENGTH = 10
/** Number of random digits that make an id hard to guess. */
const SECRET_LENGTH = 16
const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'

/** Returns `msg_`, the position in base 36, so that ids sort by time, and a digit per random byte. */
function messageId (position: number, random: Uint8Array): string {
  return `msg_${position.toString(36).padStart(POSITION_LENGTH, '0')}${secretOf(random)}`
}

function secretOf (random: Uint8Array): string {
  let secret = ''
  for (const byte of random) secret += DIGITS[byte % DIGITS.length]
  return secret
}

/** Returns an SQL expression for the last digits of a number in base 36. */
function base36Sql (number: string, digits: number): string {
  const places = Array.from({ length: digits }, (_, i) => 36 ** (digits - 1 - i))
  return places.map((place) => `substr('${DIGITS}', CAST(${number} / ${place} % 36 AS integer) + 1, 1)`).join(' || ')
}
