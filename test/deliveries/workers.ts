import { setMaxListeners } from 'node:events'
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import { createPace } from '../../src/database/job.ts'
import { completeDeliveries } from '../../src/deliveries/complete.ts'
import { createDeliveryWorker, type DeliveryWorker, type WorkerOptions } from '../../src/deliveries/delivery-worker.ts'
import type { DispatchContext } from '../../src/deliveries/dispatch-context.ts'
import { createWebhookClient } from '../../src/deliveries/http-client.ts'
import { createRequestSlots } from '../../src/deliveries/request-slots.ts'

type WorkerSettings = Pick<WorkerOptions, 'leaseMs' | 'retrySchedule' | 'aroundCall'> & { timeoutMs?: number }

/**
 * Starts a worker with settings of its own for a service with DELIVERY=false. It polls every 5 s and is woken only by
 * its `wake`.
 */
export function startDeliveryWorker (
  t: Test, { read, commit, log }: FastifyInstance, { timeoutMs, ...settings }: WorkerSettings
): DeliveryWorker {
  const client = createWebhookClient({ allowPrivate: true, timeoutMs })
  const worker = createDeliveryWorker({ read, commit, client, log, ...settings })
  t.teardown(worker.close)
  return worker
}

/** Wakes a worker again and again, so that no test waits for its polls. */
export function keepWaking (t: Test, worker: Pick<DeliveryWorker, 'wake'>): void {
  const timer = setInterval(() => { worker.wake([]) }, 100)
  t.teardown(() => { clearInterval(timer) })
}

/**
 * Returns the context in which a worker runs its dispatchers, without the worker. Other accounts, with negative ids,
 * have `openRequests` requests in flight.
 */
export function dispatchContext (
  t: Test, { commit, log }: FastifyInstance, openRequests: number
): DispatchContext {
  const slots = createRequestSlots()
  for (let i = 0; i < openRequests; i++) slots.take({ account: -1 - Math.floor(i / 20), host: undefined })
  const client = createWebhookClient({ allowPrivate: true })
  t.teardown(client.close)
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  const pending: Array<Promise<void>> = []
  t.teardown(async () => {
    stop.abort()
    await Promise.allSettled(pending)
  })
  return {
    worker: 'a',
    commit,
    client,
    log,
    stopped: stop.signal,
    slots,
    runEnding: createPace(stop.signal),
    complete: async (completion) => { await commit(completeDeliveries, completion, { account: null }) },
    track (work) { pending.push(work) },
    schedulePollWithin () {}
  }
}
