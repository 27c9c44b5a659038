import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { createDeliveryWorker } from './delivery-worker.ts'
import { createWebhookClient } from './http-client.ts'

export interface DeliveryOptions {
  /** Allows webhooks to call private, loopback and link-local addresses. */
  allowPrivate: boolean
  /** Limits the time of a request; `REQUEST_TIMEOUT_MS` by default. */
  requestTimeoutMs?: number
  /** Time for which a worker owns the deliveries that it claims; `LEASE_MS` by default. */
  leaseMs?: number
}

/** Makes this process deliver. A stop aborts the requests in flight; a worker sends them again later. */
export const delivery = fp(async function delivery (app: FastifyInstance, options: DeliveryOptions) {
  const { allowPrivate, requestTimeoutMs: timeoutMs, leaseMs } = options
  const { read, commit, log, instrumentation } = app
  const client = createWebhookClient({ allowPrivate, timeoutMs })
  const worker = createDeliveryWorker({ read, commit, log, instrumentation, client, leaseMs })
  app.onChange(({ deliveries, webhooks }) => {
    if (deliveries !== undefined || webhooks !== undefined) worker.wake(webhooks ?? [])
  })
  app.addHook('preClose', worker.close)
}, { name: 'delivery', dependencies: ['database'] })
