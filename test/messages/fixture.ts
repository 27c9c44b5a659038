import { messageList } from '../../src/messages/queries.ts'
import type { Fixture } from '../support/fixture.ts'

export const fixture: Fixture = {
  record: {
    idName: 'messageId',
    create: async (client) => (await client.post('/messages', { message: 'Hello' })).body.id,
    missingCode: 'message_not_found'
  },
  list: {
    definition: messageList,
    insertRows: ({ from, account, time }) => `INSERT INTO messages (position, id, account_id, message, created_at)
      SELECT i, 'msg' || i, ${account}, 'm', ${time} ${from}`
  },
  operations: {
    'post /messages': ['createMessage', 'messages', 201],
    'get /messages': ['listMessages', 'messages', 200],
    'get /messages/{messageId}': ['getMessage', 'messages', 200, 'message_not_found']
  },
  keyedWrites: {
    createMessage: { prepare: async () => ['POST', '/messages', { message: 'Hello' }], shows: '/messages' }
  },
  errors: {
    message_not_found: {
      status: 404,
      raise: async (_app, client) => await client.get(`/messages/msg_${'0'.repeat(26)}`)
    }
  }
}
