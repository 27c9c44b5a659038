import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import type { Test } from 'tap'
import { createWebhookClient } from '../../src/deliveries/http-client.ts'
import { createWebhookDispatcher, type DispatchContext } from '../../src/deliveries/webhook-dispatcher.ts'
import { completeDeliveries } from '../../src/deliveries/complete.ts'
import { backlog, DELIVERING, send, subscribed } from '../support/delivery.ts'
import { eventually } from '../support/receiver.ts'

/** What a worker gives its lanes, without the worker. */
function contextOf (t: Test, { commit, log }: FastifyInstance, calls: number): DispatchContext {
  const caller = createWebhookClient({ allowPrivate: true })
  t.teardown(caller.close)
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  const work: Array<Promise<void>> = []
  t.teardown(async () => {
    stop.abort()
    await Promise.allSettled(work)
  })
  return {
    worker: 'a',
    commit,
    caller,
    log,
    stopped: stop.signal,
    calls,
    starved: new Set(),
    write: async (settlement) => { await commit(completeDeliveries, settlement, { account: null }) },
    track (promise) { work.push(promise) },
    lookBy () {}
  }
}

t.test('lanes that together took more than may be called at once send the rest as soon as there is room', async (t) => {
  const { service, ada, receiver, path } = await subscribed(t, { events: ['message.created'] }, { ...DELIVERING, DELIVERY: 'false' })
  const { body: { id: other } } = await ada.post('/webhooks', { url: receiver.url, events: ['message.created'] })
  receiver.secrets = []
  receiver.respond = (response) => { setTimeout(() => { response.writeHead(204).end() }, 50) }
  for (let i = 0; i < 8; i++) await send(ada)
  // All but 8 of the 500 calls are under way.
  const context = contextOf(t, service.app, 492)
  for (const id of [Number(path.split('/').at(-1)), other]) createWebhookDispatcher(id, context, () => {}).offer()
  await receiver.until(16, 5_000)
  t.equal(receiver.most, 8)
})

t.test('a lane ends when nothing is left, also after its webhook said that it is gone', async (t) => {
  for (const status of [204, 410]) {
    const { service: { app }, receiver, path } = await backlog(t, 3)
    receiver.respond = (response) => { response.writeHead(status).end() }
    let ends = 0
    const lane = createWebhookDispatcher(Number(path.split('/').at(-1)), contextOf(t, app, 0), () => { ends++ })
    lane.offer()
    await receiver.until(1)
    await eventually(async () => ends > 0, 5_000, () => `the lane of a webhook that answers ${status} stays`)
    await sleep(1_500)
    t.equal(ends, 1, `after ${status}, once`)
  }
})
