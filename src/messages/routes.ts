import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { MessageNotFound } from './errors.ts'
import { arrayOf, ref } from '../http/common-schemas.ts'
import { sendCreated, sendFound, sendList } from '../http/record-routes.ts'
import { MessageParams, MessageQuery, MessageSchema, NewMessageSchema } from './schemas.ts'
import { createMessage, messageSecret } from './commands.ts'
import { findMessage, listMessages } from './queries.ts'

export const messageRoutes: FastifyPluginAsyncTypebox = async function messageRoutes (app) {
  app.post('/messages', {
    schema: {
      operationId: 'createMessage',
      summary: 'Send a message',
      description: 'Stores a text with the status `queued`, and delivers it to each webhook that receives ' +
        '`message.created`.',
      body: ref(NewMessageSchema),
      response: { 201: ref(MessageSchema) }
    }
  }, async (request, reply) => {
    const { body: message } = request
    return await sendCreated(request, reply, createMessage, { message, secret: messageSecret() })
  })

  app.get('/messages', {
    schema: {
      operationId: 'listMessages',
      summary: 'List messages',
      description: 'Lists messages by id, which is also the order of time, a page at a time.',
      querystring: MessageQuery,
      response: { 200: arrayOf(MessageSchema) }
    }
  }, async (request, reply) => await sendList(request, reply, listMessages))

  app.get('/messages/:messageId', {
    schema: {
      operationId: 'getMessage',
      summary: 'Get a message',
      description: 'Returns one message with its processing status.',
      params: MessageParams,
      response: { 200: ref(MessageSchema) }
    },
    config: { errors: [MessageNotFound] }
  }, async (request, reply) => await sendFound(request, reply, findMessage, request.params.messageId, MessageNotFound))
}
