import { createMessage } from '../../src/messages/commands.ts'
import { decisionsOf, NEW_ID, NOW } from '../support/decide.ts'

const secret = '0123456789abcdef'

export const decisions = [
  decisionsOf(createMessage, {
    'a text': {
      input: { message: { message: 'Hello' }, secret },
      outcome: {
        record: { id: `msg_000000000b${secret}`, message: 'Hello', status: 'queued', createdAt: NOW },
        etag: '"1"',
        events: ['message.created'],
        saved: { messages: { [NEW_ID]: { id: `msg_000000000b${secret}`, message: 'Hello', createdAt: NOW } } }
      }
    },
    'an id that is known before': {
      input: { message: { message: 'Hello' }, secret, id: 'msg_known' },
      outcome: {
        record: { id: 'msg_known', message: 'Hello', status: 'queued', createdAt: NOW },
        etag: '"1"',
        events: ['message.created'],
        saved: { messages: { [NEW_ID]: { id: 'msg_known', message: 'Hello', createdAt: NOW } } }
      }
    }
  })
]
