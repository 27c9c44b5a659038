import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { createWebhookClient } from './http-client.ts'
import { createDeliveryWorker } from './delivery-worker.ts'

export interface DeliveryOptions {
  /** Let webhooks call private, loopback and link-local addresses. */
  allowPrivate: boolean
}

/** This process delivers. A stop drops the calls under way at once; they are made again later. */
export const delivery = fp(async function delivery (app: FastifyInstance, { allowPrivate }: DeliveryOptions) {
  const { read, commit, log, instrumentation } = app
  const worker = createDeliveryWorker({ read, commit, log, instrumentation, caller: createWebhookClient({ allowPrivate }) })
  app.onNews(({ due, webhooks }) => { if (due) worker.wake(webhooks) })
  app.addHook('preClose', worker.close)
}, { name: 'delivery', dependencies: ['database'] })
