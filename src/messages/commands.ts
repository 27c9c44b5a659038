import { randomBytes } from 'node:crypto'
import { etagOf, recordOf } from '../database/record.ts'
import type { Write } from '../database/unit-of-work/write.ts'
import { messages } from '../generated/tables.ts'
import { messageEvents, MessageSchema, type Message, type NewMessage } from './schemas.ts'

export interface NewMessageInput {
  message: NewMessage
  /** Random digits, which make an id hard to guess. */
  secret: string
  /** The id of a message whose id must be known before. */
  id?: string
}

export const createMessage: Write<NewMessageInput, Message> = {
  name: 'createMessage',
  creates: [messages],
  decide ({ message, secret, id: knownId }, rows) {
    const position = rows.newId(messages)
    const id = knownId ?? messageId(position, secret)
    const record = recordOf(MessageSchema, rows.insert(messages, { position, id, createdAt: rows.now, ...message }))
    return {
      record, etag: etagOf(1), events: [{ tracks: position, ...messageEvents.created({ message: record }) }]
    }
  }
}

/** Number of digits of the position. */
const POSITION_LENGTH = 10
/** Number of random digits that make an id hard to guess. */
const SECRET_LENGTH = 16
const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz'

/** Returns `msg_`, the position in base 36, so that ids sort by time, and the secret. */
export function messageId (position: number, secret: string): string {
  return `msg_${position.toString(36).padStart(POSITION_LENGTH, '0')}${secret}`
}

/** Random bytes are drawn for so many messages at once. To draw them for each took 11 of 100 us of a new message. */
const SECRETS_PER_DRAW = 64

let drawn = Buffer.alloc(0)

/** Returns a digit for each of some random bytes. */
export function messageSecret (): string {
  if (drawn.length === 0) drawn = randomBytes(SECRET_LENGTH * SECRETS_PER_DRAW)
  let secret = ''
  for (const byte of drawn.subarray(0, SECRET_LENGTH)) secret += DIGITS[byte % DIGITS.length]
  drawn = drawn.subarray(SECRET_LENGTH)
  return secret
}
