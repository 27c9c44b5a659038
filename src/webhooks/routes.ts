import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { pageRequest } from '../http/pagination.ts'
import { sendWriteResult, sendPage, sendRecord } from '../http/responses.ts'
import { conditionsOf } from '../http/conditional-requests.ts'
import { ValidationFailed } from '../errors.ts'
import { WebhookLimitReached, WebhookNotFound } from './errors.ts'
import { writeContext } from '../http/idempotency.ts'
import { NoContent, ref } from '../http/common-schemas.ts'
import { isPublicAddress, literalAddress } from '../deliveries/address-policy.ts'
import { createWebhook, deleteWebhook, rotateSecret, testWebhook, updateWebhook } from './commands.ts'
import { findWebhook, listWebhooks } from './queries.ts'
import { WebhookParams, WebhookQuery, type WebhookSchemas } from './schemas.ts'

export interface WebhookOptions {
  schemas: WebhookSchemas
  /** All types of events: what a webhook receives by default. */
  eventTypes: readonly string[]
  /** Let webhooks call private, loopback and link-local addresses. */
  allowPrivate: boolean
}

const common = { tags: ['webhooks'], 'x-stability': 'experimental' }

export function webhookRoutes ({ schemas, eventTypes, allowPrivate }: WebhookOptions): FastifyPluginAsyncTypebox {
  const { NewWebhookSchema, WebhookSchema, WebhookUpdateSchema, WebhookWithSecretSchema } = schemas

  return async function webhookRoutes (app) {
    app.get('/webhooks', {
      schema: {
        ...common,
        operationId: 'listWebhooks',
        summary: 'List webhooks',
        description: 'Webhooks by id, without their secrets and attempts, a page at a time.',
        querystring: WebhookQuery,
        response: { 200: Type.Array(ref(WebhookSchema)) }
      }
    }, async (request, reply) => {
      const { auth: { account }, query } = request
      return sendPage(request, reply, await listWebhooks(app.read, account, pageRequest(query)))
    })

    app.post('/webhooks', {
      schema: {
        ...common,
        operationId: 'createWebhook',
        summary: 'Add a webhook',
        description: [
          'From now on, events are sent to the address by POST: the body is the event as the feed shows it, signed by the Standard Webhooks specification with the secret of this answer, which is shown this once.',
          'An event is sent until the address answers with a 2xx status, again after growing pauses for about a day, so it may come more than once: `webhook-id` stays the same. Up to 8 are under way at a time; order by `id`. `Retry-After` is honoured, a redirection is not followed, and a 410 switches the webhook off. An account has 20 webhooks at most.'
        ].join('\n\n'),
        body: ref(NewWebhookSchema),
        response: { 201: ref(WebhookWithSecretSchema) }
      },
      config: { errors: [WebhookLimitReached], secret: true }
    }, async (request, reply) => {
      const { auth: { account }, body: { url, events = [...eventTypes], enabled = true } } = request
      checkTarget(url, allowPrivate)
      const created = await app.commit(createWebhook, { account, webhook: { url, events, enabled } }, writeContext(request))
      return sendWriteResult(reply.header('cache-control', 'no-store'), 201, created, `/webhooks/${created.record.id}`)
    })

    app.get('/webhooks/:webhookId', {
      schema: {
        ...common,
        operationId: 'getWebhook',
        summary: 'Get a webhook',
        description: 'One webhook by its id, with the last 20 attempts to deliver to it.',
        params: WebhookParams,
        response: { 200: ref(WebhookSchema) }
      },
      config: { errors: [WebhookNotFound] }
    }, async (request, reply) => {
      const { auth: { account }, params: { webhookId } } = request
      const webhook = await findWebhook(app.read, account, webhookId)
      if (webhook === undefined) throw new WebhookNotFound()
      return sendRecord(request, reply, webhook)
    })

    app.patch('/webhooks/:webhookId', {
      schema: {
        ...common,
        operationId: 'updateWebhook',
        summary: 'Change a webhook',
        description: 'A JSON merge patch. What waits is sent to the new `url`; `enabled: true` also undoes a 410 of the receiver.',
        params: WebhookParams,
        body: ref(WebhookUpdateSchema),
        response: { 200: ref(WebhookSchema) }
      },
      config: { errors: [WebhookNotFound] }
    }, async (request, reply) => {
      const { auth: { account }, params: { webhookId }, body: patch } = request
      checkTarget(patch.url, allowPrivate)
      return sendWriteResult(reply, 200, await app.commit(updateWebhook, { account, webhookId, patch, conditions: conditionsOf(request) }, writeContext(request)))
    })

    app.delete('/webhooks/:webhookId', {
      schema: {
        ...common,
        operationId: 'deleteWebhook',
        summary: 'Delete a webhook',
        description: 'What waits for it is dropped, and messages no longer wait for its answers.',
        params: WebhookParams,
        response: { 204: NoContent }
      },
      config: { errors: [WebhookNotFound] }
    }, async (request, reply) => {
      const { auth: { account }, params: { webhookId } } = request
      return sendWriteResult(reply, 204, await app.commit(deleteWebhook, { account, webhookId, conditions: conditionsOf(request) }, writeContext(request)))
    })

    app.post('/webhooks/:webhookId/rotate', {
      schema: {
        ...common,
        operationId: 'rotateWebhookSecret',
        summary: 'Rotate the secret of a webhook',
        description: 'Makes a new secret, which is shown this once. For 24 hours the one before signs as well.',
        params: WebhookParams,
        response: { 200: ref(WebhookWithSecretSchema) }
      },
      config: { errors: [WebhookNotFound], secret: true }
    }, async (request, reply) => {
      const { auth: { account }, params: { webhookId } } = request
      const rotated = await app.commit(rotateSecret, { account, webhookId }, writeContext(request))
      return sendWriteResult(reply.header('cache-control', 'no-store'), 200, rotated)
    })

    app.post('/webhooks/:webhookId/test', {
      schema: {
        ...common,
        operationId: 'testWebhook',
        summary: 'Send a test to a webhook',
        description: 'Sends an event of the type `webhook.test` once, also to a webhook that is switched off. It is in no feed; the attempt is shown with the webhook.',
        params: WebhookParams,
        response: { 202: Type.Null({ description: 'The test is on its way.' }) }
      },
      config: { errors: [WebhookNotFound] }
    }, async (request, reply) => {
      const { auth: { account }, params: { webhookId } } = request
      return sendWriteResult(reply, 202, await app.commit(testWebhook, { account, webhookId }, writeContext(request)))
    })
  }
}

/** A name is looked up, and its address judged, on every attempt; a bare address is judged here as well. */
function checkTarget (url: string | undefined, allowPrivate: boolean): void {
  const address = url === undefined ? undefined : literalAddress(url)
  if (address === undefined || allowPrivate || isPublicAddress(address)) return
  throw new ValidationFailed('url must not be a private, loopback, link-local or otherwise reserved address')
}
