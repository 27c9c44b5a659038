import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { WebhookAttemptDetailSchema, WebhookAttemptSchema } from '../deliveries/schemas.ts'
import { EventsExpired } from '../events/errors.ts'
import { arrayOf, ref } from '../http/common-schemas.ts'
import { conditionsOf } from '../http/conditional-requests.ts'
import { recordWriteContext } from '../http/idempotency.ts'
import { pageRequest } from '../http/pagination.ts'
import { sendPage, sendRecord, sendWriteResult } from '../http/responses.ts'
import { findAttempt, listAttempts } from './attempt-queries.ts'
import { AttemptNotFound, UnknownEvent, WebhookNotFound } from './errors.ts'
import { resendEvents } from './resend-command.ts'
import { createResendTurns } from './resend-turns.ts'
import {
  AttemptParams, AttemptQuery, ResendSchema, ResentEventsSchema, TestDeliverySchema, WebhookParams
} from './schemas.ts'
import { testWebhook } from './test-command.ts'

const common = { tags: ['webhooks'], 'x-stability': 'experimental' }

/** The operations on what a webhook was sent. */
export const deliveryRoutes: FastifyPluginAsyncTypebox = async function deliveryRoutes (app) {
  const inTurn = createResendTurns()

  app.get('/webhooks/:webhookId/attempts', {
    schema: {
      ...common,
      operationId: 'listWebhookAttempts',
      summary: 'List attempts to deliver to a webhook',
      description: 'Lists the last 1,000 attempts, newest first, a page at a time. There are fewer if their requests ' +
        'and responses take more than 2 MB.',
      params: WebhookParams,
      querystring: AttemptQuery,
      response: { 200: arrayOf(WebhookAttemptSchema) }
    },
    config: { errors: [WebhookNotFound] }
  }, async (request, reply) => {
    const { auth: { account }, params: { webhookId }, query } = request
    const page = await listAttempts(app.read, account, webhookId, pageRequest(query))
    if (page === undefined) throw new WebhookNotFound()
    return sendPage(request, reply, page)
  })

  app.get('/webhooks/:webhookId/attempts/:attemptId', {
    schema: {
      ...common,
      operationId: 'getWebhookAttempt',
      summary: 'Get an attempt to deliver to a webhook',
      description: 'Returns an attempt with the request that the service sent and the response of the receiver: its ' +
        'header fields and its body, up to 4 KB of each. The body of the request is missing once the event has ' +
        'expired.',
      params: AttemptParams,
      response: { 200: ref(WebhookAttemptDetailSchema) }
    },
    config: { errors: [WebhookNotFound, AttemptNotFound] }
  }, async (request, reply) => {
    const { auth: { account }, params: { webhookId, attemptId } } = request
    const attempt = await findAttempt(app.read, account, webhookId, attemptId)
    if (attempt === undefined) throw new WebhookNotFound()
    if (attempt === null) throw new AttemptNotFound()
    return sendRecord(request, reply, attempt)
  })

  app.post('/webhooks/:webhookId/resend', {
    schema: {
      ...common,
      operationId: 'resendEvents',
      summary: 'Send events to a webhook again',
      description: [
        'Sends one event, or up to 10,000, in their order. A request has the same `webhook-id` as before, ' +
          'and a new timestamp and signature. A webhook receives only types in its `events`, and nothing while it ' +
          'is disabled.',
        'An event that waits for its first attempt is not sent twice. One that waits for a retry is sent now. With ' +
          '`"only": "failed"`, the service sends only those, and the last 10,000 that it gave up.'
      ].join('\n\n'),
      params: WebhookParams,
      body: ref(ResendSchema),
      response: { 202: ref(ResentEventsSchema) }
    },
    config: { errors: [WebhookNotFound, UnknownEvent, EventsExpired] }
  }, async (request, reply) => {
    const { auth: { account }, params: { webhookId }, body } = request
    const input = { account, webhookId, selection: body, conditions: conditionsOf(request) }
    const context = recordWriteContext(request)
    const resent = await inTurn(account, async () => await app.commit(resendEvents, input, context))
    return sendWriteResult(reply, 202, resent)
  })

  app.post('/webhooks/:webhookId/test', {
    schema: {
      ...common,
      operationId: 'testWebhook',
      summary: 'Send a test to a webhook',
      description: 'Sends an event of the type `webhook.test` once, also to a disabled webhook. `GET /events` ' +
        'does not show it. `GET /webhooks/{webhookId}/attempts` shows the attempt.',
      params: WebhookParams,
      response: { 202: ref(TestDeliverySchema) }
    },
    config: { errors: [WebhookNotFound] }
  }, async (request, reply) => {
    const { auth: { account }, params: { webhookId } } = request
    const input = { account, webhookId, conditions: conditionsOf(request) }
    return sendWriteResult(reply, 202, await app.commit(testWebhook, input, recordWriteContext(request)))
  })
}
