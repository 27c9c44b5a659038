import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { claimDeliveries, type ClaimedDelivery, type ClaimResult } from '../../src/deliveries/claim.ts'
import { completeDeliveries, type Completion } from '../../src/deliveries/complete.ts'
import type { Commit } from '../../src/database/group-commit/committer.ts'
import { createWebhookDispatcher } from '../../src/deliveries/webhook-dispatcher.ts'
import { startApp, type Client, type TestApp } from '../support/app.ts'
import { backlog, becomes, DELIVERING, send, subscribed } from '../support/delivery.ts'
import { database } from '../support/database.ts'
import { eventually } from '../support/receiver.ts'
import { dispatchContext, keepWaking, startDeliveryWorker } from './workers.ts'

/** What workers leave to each other when one of them stops, is late or cannot reach the database. */

const webhookIdOf = (path: string): number => Number(path.split('/').at(-1))

interface Waiting { leasedBy: string | null, attempts: number }

async function waitingDeliveries ({ app }: TestApp): Promise<Waiting[]> {
  return await app.database.prisma.delivery.findMany({
    where: { state: 'waiting' }, select: { leasedBy: true, attempts: true }
  })
}

t.test('a worker that stops returns what it has claimed, and other workers continue at once', async (t) => {
  const { service, ada, receiver, ids } = await backlog(t, 40)
  receiver.respond = () => {}
  // Quick at first, on any machine, so that the worker claims a reserve beyond the requests in flight.
  let calls = 0
  const worker = startDeliveryWorker(t, service.app, {
    aroundCall: async (_delivery, call) => ++calls <= 4 ? { status: 204 } : await call()
  })
  await receiver.until(8)
  t.ok((await waitingDeliveries(service)).filter(({ leasedBy }) => leasedBy !== null).length > 8, 'it has a reserve')
  await worker.close()
  const left = await waitingDeliveries(service)
  t.equal(left.length, 36)
  t.same(left.filter(({ leasedBy, attempts }) => leasedBy !== null || attempts > 0), [], 'no lease or attempt is left')
  receiver.respond = (response) => { response.writeHead(204).end() }
  startDeliveryWorker(t, service.app, {})
  for (const id of ids) await becomes(ada, id, 'delivered')
})

t.test('a delivery whose call fails here is sent a second later, without another attempt', async (t) => {
  const { service, receiver, path, ada } = await backlog(t, 1)
  let failedAt = Infinity
  const worker = startDeliveryWorker(t, service.app, {
    aroundCall: async (_delivery, call) => {
      if (failedAt < Infinity) return await call()
      failedAt = Date.now()
      throw new Error('The database is overloaded')
    }
  })
  await eventually(async () => {
    const { leasedBy, nextTryAt } = (await service.app.database.prisma.delivery.findFirst())!
    return leasedBy === null && nextTryAt.getTime() >= failedAt + 1_000
  })
  keepWaking(t, worker)
  await receiver.until(1)
  await eventually(async () => (await waitingDeliveries(service)).length === 0)
  t.equal((await ada.get(`${path}/attempts`)).body.length, 1)
})

t.test('a worker leaves a webhook to the worker that serves it, until that one stops', async (t) => {
  const { service: { app }, receiver } = await backlog(t, 3)
  receiver.respond = () => {}
  const first = startDeliveryWorker(t, app, {})
  await receiver.until(1)
  let claims = 0
  const commit = (async (command, input, context) => {
    if (command.name === claimDeliveries.name) claims++
    return await app.commit(command, input, context)
  }) as Commit
  const second = startDeliveryWorker(t, Object.assign(Object.create(app), { commit }) as typeof app, {})
  for (let i = 0; i < 15; i++) {
    second.wake([])
    await sleep(40)
  }
  t.equal(claims, 0, 'its claims would only lock the webhook')
  await first.close()
  await receiver.until(2)
  t.equal(claims, 1)
})

t.test('a request that could outlive its lease is not sent', async (t) => {
  const { service, receiver } = await backlog(t, 1)
  // A request can take 2 s, and needs 2 s more to store its result.
  const worker = startDeliveryWorker(t, service.app, { timeoutMs: 2_000, leaseMs: 3_000 })
  await sleep(600)
  t.equal(receiver.received.length, 0)
  await worker.close()
  startDeliveryWorker(t, service.app, { timeoutMs: 2_000, leaseMs: 20_000 })
  await receiver.until(1)
})

t.test('a result is ignored when its lease has ended', async (t) => {
  const { service: { app }, ada, ids: [id = ''], path } = await backlog(t, 1)
  const webhookId = webhookIdOf(path)
  const claim = async (worker: string, leaseMs: number): Promise<ClaimedDelivery> => {
    const input = { account: ada.account!, webhookId, worker, limit: 1, leaseMs }
    return (await app.commit(claimDeliveries, input, { account: null })).record.claimed[0]!
  }
  const complete = async ({ id, lease }: ClaimedDelivery, result: Completion['result']): Promise<void> => {
    const completion = { id, account: ada.account!, webhookId, lease, message: 1, url: 'http://127.0.0.1/', result }
    await app.commit(completeDeliveries, completion, { account: null })
  }
  let last = await claim('slow', 1)
  for (const [what, worker] of [['another worker', 'other'], ['the same worker', 'other']] as const) {
    await sleep(20)
    const next = await claim(worker, 1)
    t.equal(next.id, last.id)
    for (const result of ['accepted', 'exhausted', 'returned'] as const) await complete(last, result)
    const row = await app.database.prisma.delivery.findFirst()
    t.match(row, { state: 'waiting', leasedBy: next.lease, attempts: 1 }, `claimed again by ${what}`)
    t.equal((await ada.get(`/messages/${id}`)).body.status, 'queued')
    last = next
  }
  await complete(last, 'accepted')
  t.equal((await ada.get(`/messages/${id}`)).body.status, 'delivered')
})

t.test('a lease lasts as long where the clock of its account stands still', async (t) => {
  const { service: { app }, ada, path } = await backlog(t, 0)
  const to = '9999-12-31T23:59:59.999Z'
  t.equal((await ada.post('/lab/clock/advance', { to })).status, 200)
  await eventually(async () => (await ada.get('/webhooks')).headers['petstore-clock'] === to)
  for (let i = 0; i < 2; i++) await send(ada)
  const claim = async (worker: string, leaseMs: number): Promise<ClaimResult> => {
    const input = { account: ada.account!, webhookId: webhookIdOf(path), worker, limit: 1, leaseMs }
    return (await app.commit(claimDeliveries, input, { account: null })).record
  }
  const { claimed: [first] } = await claim('first', 60_000)
  t.ok(first!.leasedUntil > Date.now())
  t.match(await claim('other', 60_000), { claimed: [], isBusy: true })
  const { claimed: [second] } = await claim('first', 1)
  t.not(second!.id, first!.id, 'its worker claims the next one')
  await sleep(20)
  t.match((await claim('first', 60_000)).claimed, [{ id: second!.id, attempts: 1 }], 'a lease that has ended')
})

t.test('a result that could not be stored is stored later, and the event is not sent again', async (t) => {
  const { service: { app }, ada, receiver, ids: [id = ''] } = await backlog(t, 1)
  let failures = 0
  const commit = (async (command, input, context) => {
    if (command.name === completeDeliveries.name && failures++ < 1) throw new Error('the database is away')
    return await app.commit(command, input, context)
  }) as Commit
  // The name of the lease's owner is of no account: a second worker would have to wait for the end of the lease.
  startDeliveryWorker(t, Object.assign(Object.create(app), { commit }) as typeof app, {})
  await becomes(ada, id, 'delivered')
  t.equal(failures, 2)
  t.equal(receiver.received.length, 1)
})

t.test('a receiver that hangs, or takes long, gets one request at a time', async (t) => {
  const { service: { app }, ada, receiver, path } = await subscribed(
    t, { events: ['message.created'] }, { ...DELIVERING, DELIVERY: 'false' })
  for (let i = 0; i < 30; i++) await send(ada)
  receiver.respond = () => {}
  const worker = startDeliveryWorker(t, app, {})
  await receiver.until(1)
  await sleep(300)
  t.equal(receiver.open, 1, 'a receiver that has never answered')
  await worker.close()

  const before = receiver.received.length
  // Quick, then slow: the requests that are in flight already end first.
  receiver.respond = (response, _received, nth) => {
    setTimeout(() => { response.writeHead(204).end() }, nth - before <= 2 ? 0 : 120)
  }
  const webhook = { webhookId: webhookIdOf(path), account: ada.account! }
  createWebhookDispatcher(webhook, { ...dispatchContext(t, app, 0), slowMs: 60 }, () => {}).notify(false)
  await receiver.until(before + 14)
  receiver.most = 0
  await receiver.until(before + 18)
  t.equal(receiver.most, 1, 'a receiver that has become slow')
})

t.test('a webhook that one service changes is called with its new settings by the others', {
  skip: database === 'sqlite' && 'one process serves a SQLite file'
}, async (t) => {
  const { service, ada, receiver, path, ids } = await backlog(t, 60)
  const settings = { DATABASE_URL: service.config.DATABASE_URL, WEBHOOKS_ALLOW_PRIVATE: 'true' }
  const other = await startApp(t, settings)
  const elsewhere: Client = other.withKey(ada.key!, ada.account)
  receiver.respond = (response, { path }, nth) => {
    if (path.endsWith('/new') || nth <= 3) response.writeHead(204).end()
  }
  const worker = startDeliveryWorker(t, service.app, { timeoutMs: 3_000 })
  service.app.onChange(({ webhooks = [] }) => { worker.wake(webhooks) })
  await receiver.until(10)
  const old = (): number => receiver.received.filter(({ path }) => !path.endsWith('/new')).length
  t.equal((await elsewhere.patch(path, { url: `${receiver.url}/new` })).status, 200)
  await eventually(async () => receiver.received.some(({ path }) => path.endsWith('/new')))
  t.ok(old() <= 11, `${old()} requests to the former address`)
  for (const id of ids.slice(12)) await becomes(ada, id, 'delivered')
})
