import { randomBytes } from 'node:crypto'
import { etagOf } from '../database/entity-tag.ts'
import type { Command } from '../database/group-commit/command.ts'
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

/** Number of random digits that make an id hard to guess. */
const SECRET_LENGTH = 16
const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'

/** Returns `msg_`, the position in ten digits of base 36, so that ids sort by time, and a digit per random byte. */
function messageId (position: number, random: Uint8Array): string {
  let id = `msg_${position.toString(36).padStart(10, '0')}`
  for (const byte of random) id += DIGITS[byte % DIGITS.length]
  return id
}
