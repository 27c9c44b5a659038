import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { pageRequest } from '../http/pagination.ts'
import { sendWriteResult, sendPage, sendRecord } from '../http/responses.ts'
import { MessageNotFound } from './errors.ts'
import { writeContext } from '../http/idempotency.ts'
import { ref } from '../http/common-schemas.ts'
import { MessageParams, MessageQuery, MessageSchema, NewMessageSchema } from './schemas.ts'
import { createMessage, messageSecret } from './commands.ts'
import { findMessage, listMessages } from './queries.ts'

export const messageRoutes: FastifyPluginAsyncTypebox = async function messageRoutes (app) {
  app.post('/messages', {
    schema: {
      operationId: 'createMessage',
      tags: ['messages'],
      summary: 'Send a message',
      description: 'Stores a text with the status `queued`, and delivers it to each webhook that receives ' +
        '`message.created`.',
      body: ref(NewMessageSchema),
      response: { 201: ref(MessageSchema) }
    }
  }, async (request, reply) => {
    const { body: message } = request
    const created = await app.commit(createMessage, { message, secret: messageSecret() }, writeContext(request))
    return sendWriteResult(reply, 201, created, `/messages/${created.record.id}`)
  })

  app.get('/messages', {
    schema: {
      operationId: 'listMessages',
      tags: ['messages'],
      summary: 'List messages',
      description: 'Lists messages by id, which is also the order of time, a page at a time.',
      querystring: MessageQuery,
      response: { 200: Type.Array(ref(MessageSchema)) }
    }
  }, async (request, reply) => {
    const { auth: { account }, query } = request
    return sendPage(request, reply, await listMessages(app.read, account, pageRequest(query)))
  })

  app.get('/messages/:messageId', {
    schema: {
      operationId: 'getMessage',
      tags: ['messages'],
      summary: 'Get a message',
      description: 'Returns one message with its processing status.',
      params: MessageParams,
      response: { 200: ref(MessageSchema) }
    },
    config: { errors: [MessageNotFound] }
  }, async (request, reply) => {
    const { auth: { account }, params: { messageId } } = request
    const message = await findMessage(app.read, account, messageId)
    if (message === undefined) throw new MessageNotFound()
    return sendRecord(request, reply, message)
  })
}
