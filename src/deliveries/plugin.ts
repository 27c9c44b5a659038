import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { createDeliveryWorker } from './delivery-worker.ts'
import type { AroundCall } from './delivery-attempt.ts'
import { createWebhookClient } from './http-client.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Lets a function make the calls of deliveries. Only in processes that deliver. */
    interceptCalls?: (aroundCall: AroundCall) => void
  }
}

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
  const { read, clocks, commit, log, instrumentation } = app
  let interceptor: AroundCall | undefined
  app.decorate('interceptCalls', (aroundCall) => { interceptor = aroundCall })
  const client = createWebhookClient({ allowPrivate, timeoutMs })
  const worker = createDeliveryWorker({
    read,
    clocks,
    commit,
    log,
    instrumentation,
    client,
    aroundCall: async (delivery, call, stopped) =>
      await (interceptor === undefined ? call() : interceptor(delivery, call, stopped)),
    leaseMs
  })
  app.onChange(({ deliveries, webhooks }) => {
    if (deliveries !== undefined || webhooks !== undefined) worker.wake(webhooks ?? [])
  })
  // Deliveries may be due by the new time.
  clocks.onAdvance = () => { worker.wake([]) }
  app.addHook('preClose', worker.close)
}, { name: 'delivery', dependencies: ['database'] })
