import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { sendChanged, sendCreated, sendFound, sendList } from '../http/record-routes.ts'
import { ValidationFailed, withProblem } from '../errors.ts'
import { WebhookLimitReached, WebhookNotFound } from './errors.ts'
import { arrayOf, NoContent, ref } from '../http/common-schemas.ts'
import { hasPrivateHost } from '../deliveries/address-policy.ts'
import { createWebhook, deleteWebhook, rotateSecret, updateWebhook, webhookSecret } from './commands.ts'
import { deliveryRoutes } from './delivery-routes.ts'
import { findWebhook, listWebhooks } from './queries.ts'
import {
  NewWebhookSchema, WebhookParams, WebhookQuery, WebhookSchema, WebhookUpdateSchema, WebhookWithSecretSchema
} from './schemas.ts'

export interface WebhookOptions {
  /** All types of events. A webhook receives all of them by default. */
  eventTypes: readonly string[]
  /** Allows webhooks to call private, loopback and link-local addresses. */
  allowPrivate: boolean
}

const common = { tags: ['webhooks'], 'x-stability': 'experimental' }

export function webhookRoutes ({ eventTypes, allowPrivate }: WebhookOptions): FastifyPluginAsyncTypebox {
  return async function webhookRoutes (app) {
    app.get('/webhooks', {
      schema: {
        ...common,
        operationId: 'listWebhooks',
        summary: 'List webhooks',
        description: 'Lists webhooks by id, without their secrets, a page at a time.',
        querystring: WebhookQuery,
        response: { 200: arrayOf(WebhookSchema) }
      }
    }, async (request, reply) => await sendList(request, reply, listWebhooks))

    app.post('/webhooks', {
      schema: {
        ...common,
        operationId: 'createWebhook',
        summary: 'Add a webhook',
        description: [
          'From now on, the service sends events of the types in `events` to the address by POST. The body is the ' +
            'event as `GET /events` shows it. The request is signed as the Standard Webhooks specification says, ' +
            'with the secret that is shown only in this response.',
          'The service retries with growing pauses for about a day, until the address responds with a 2xx status. An ' +
            'event may arrive more than once, always with the same `webhook-id`. Up to 8 requests are in flight at a ' +
            'time, so order the events by `id`. The service honours `Retry-After` and follows no redirection. A 410 ' +
            'disables the webhook, and so do 50 failed attempts in a row over at least a day.'
        ].join('\n\n'),
        body: ref(NewWebhookSchema),
        response: { 201: ref(WebhookWithSecretSchema) }
      },
      config: {
        errors: [WebhookLimitReached],
        secret: true,
        examples: { body: { url: 'https://example.com/hooks/petstore', events: ['message.created'], enabled: false } }
      }
    }, async (request, reply) => {
      const webhook = { events: [...eventTypes], ...request.body }
      checkTarget(webhook.url, allowPrivate)
      reply.header('cache-control', 'no-store')
      return await sendCreated(request, reply, createWebhook, { webhook, secret: webhookSecret() })
    })

    app.get('/webhooks/:webhookId', {
      schema: {
        ...common,
        operationId: 'getWebhook',
        summary: 'Get a webhook',
        description: 'Returns one webhook, without its secret.',
        params: WebhookParams,
        response: { 200: ref(WebhookSchema) }
      },
      config: { errors: [WebhookNotFound] }
    }, async (request, reply) =>
      await sendFound(request, reply, findWebhook, request.params.webhookId, WebhookNotFound))

    app.patch('/webhooks/:webhookId', {
      schema: {
        ...common,
        operationId: 'updateWebhook',
        summary: 'Change a webhook',
        description: 'A JSON merge patch. The service sends waiting deliveries to the new `url`. `enabled: true` ' +
          'also enables a webhook again that a 410 from the receiver, or a day of failed attempts, disabled.',
        params: WebhookParams,
        body: ref(WebhookUpdateSchema),
        response: { 200: ref(WebhookSchema) }
      },
      config: {
        errors: [WebhookNotFound], examples: { body: { events: ['message.created', 'message.failed'] } }
      }
    }, async (request, reply) => {
      const { params, body: patch } = request
      checkTarget(patch.url, allowPrivate)
      return await sendChanged(request, reply, updateWebhook, { patch, ...params })
    })

    app.delete('/webhooks/:webhookId', {
      schema: {
        ...common,
        operationId: 'deleteWebhook',
        summary: 'Delete a webhook',
        description: 'Deletes the webhook and drops its waiting deliveries. The status of a message no longer ' +
          'depends on them.',
        params: WebhookParams,
        response: { 204: NoContent }
      },
      config: { errors: [WebhookNotFound], examples: { webhookId: 2 } }
    }, async (request, reply) => await sendChanged(request, reply, deleteWebhook, request.params))

    app.post('/webhooks/:webhookId/rotate', {
      schema: {
        ...common,
        operationId: 'rotateWebhookSecret',
        summary: 'Rotate the secret of a webhook',
        description: 'Creates a new secret, which is shown only in this response. For 24 hours, the previous secret ' +
          'signs as well.',
        params: WebhookParams,
        response: { 200: ref(WebhookWithSecretSchema) }
      },
      config: { errors: [WebhookNotFound], secret: true }
    }, async (request, reply) => {
      reply.header('cache-control', 'no-store')
      return await sendChanged(request, reply, rotateSecret, { secret: webhookSecret(), ...request.params })
    })

    await app.register(deliveryRoutes)
  }
}

/** Rejects a host that is not public. Each attempt resolves any other name, and checks its addresses. */
function checkTarget (url: string | undefined, allowPrivate: boolean): void {
  if (url === undefined || allowPrivate || !hasPrivateHost(url)) return
  const rule = 'url must not have a private, loopback, link-local or otherwise reserved address, ' +
    'unless the service runs with WEBHOOKS_ALLOW_PRIVATE=true'
  throw withProblem(new ValidationFailed(rule), '/body/url', 'format')
}
