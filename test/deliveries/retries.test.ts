// Only on SQLite: counts attempts and pauses; the delivery tests run the statements.

import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import type { Command } from '../../src/database/group-commit/command.ts'
import type { TestApp } from '../support/app.ts'
import { attemptsOf, backlog, becomes, DELIVERING, send, subscribed } from '../support/delivery.ts'
import { eventually, openReceiver } from '../support/receiver.ts'
import { startDeliveryWorker } from './workers.ts'

const WAKE: Command<object, undefined> = {
  name: 'wake',
  run: async () => ({ record: undefined, changes: { deliveries: [] } })
}

/** Lets the service look for due deliveries again and again, as it does while messages arrive. */
function keepWaking (t: Test, { app }: TestApp): void {
  const timer = setInterval(() => { app.commit(WAKE, {}, { account: null }).catch(() => {}) }, 100)
  t.teardown(() => { clearInterval(timer) })
}

/** Makes pending deliveries due at once, or expired, so that tests do not wait for pauses. */
async function skipPause ({ app }: TestApp, expire = false): Promise<void> {
  const past = new Date(Date.now() - 1_000).toISOString()
  const { dialect, prisma } = app.database
  const time = dialect.toTime(`'${past}'`)
  await prisma.$executeRawUnsafe(`
    UPDATE deliveries SET next_try_at = ${time} ${expire ? `, give_up_at = ${time}` : ''}
    WHERE state = 'waiting' AND leased_by IS NULL`)
  await app.commit(WAKE, {}, { account: null })
}

t.test('a failed delivery is retried after a pause, with the same id, and updates its message', async (t) => {
  const { service, ada, receiver, path } = await subscribed(t, { events: ['message.created'] })
  receiver.respond = (response, _received, nth) => { response.writeHead(nth < 3 ? 500 : 200).end('x') }
  const id = await send(ada)
  await becomes(ada, id, 'processing')
  await receiver.until(1)
  await eventually(async () => (await attemptsOf(ada, path)).length === 1)
  const [first] = await attemptsOf(ada, path)
  const pause = Date.parse(first.nextTryAt) - Date.parse(first.at)
  t.ok(pause >= 5_000 && pause < 30_000, `the first pause is about 5 s: ${pause} ms`)
  await skipPause(service)
  await receiver.until(2)
  await eventually(async () => (await attemptsOf(ada, path)).length === 2)
  const [second] = await attemptsOf(ada, path)
  t.ok(Date.parse(second.nextTryAt) - Date.parse(second.at) >= 30_000, 'pauses grow')
  await skipPause(service)
  await becomes(ada, id, 'delivered')
  t.equal(new Set(receiver.received.map(({ id }) => id)).size, 1)
  t.equal((await ada.get(`/messages/${id}`)).headers.etag, '"3"', 'queued, processing, delivered')
  const { body: events } = await ada.get('/events')
  t.same(events.map(({ type }: { type: string }) => type), [
    'message.created', 'message.processing', 'message.delivered'
  ])
})

t.test('a worker retries at the end of a pause without being woken', { timeout: 600_000 }, async (t) => {
  const { service, ada, receiver } = await subscribed(
    t, { events: ['message.created'] }, { ...DELIVERING, DELIVERY: 'false' })
  // Shorter than the 5 s between two polls: a worker that scheduled no poll would need 75 s.
  const retries = 15
  const worker = startDeliveryWorker(t, service.app, { retrySchedule: Array.from({ length: retries }, () => 200) })
  receiver.respond = (response, _received, nth) => { response.writeHead(nth <= retries ? 503 : 200).end() }
  const id = await send(ada)
  worker.wake([])
  await becomes(ada, id, 'delivered', 5_000 * retries * 0.9)
  const { received } = receiver
  for (const [i, { at }] of received.slice(1).entries()) t.ok(at - received[i]!.at >= 200, 'after the pause')
})

t.test('a delivery waits as long as Retry-After asks', async (t) => {
  const { ada, receiver, path } = await subscribed(t, { events: ['message.created'] })
  receiver.respond = (response) => { response.writeHead(429, { 'retry-after': '3600' }).end() }
  await send(ada)
  await eventually(async () => (await attemptsOf(ada, path)).length === 1)
  const [{ at, status, nextTryAt }] = await attemptsOf(ada, path)
  t.equal(status, 429)
  t.ok(Date.parse(nextTryAt) - Date.parse(at) >= 3_600_000)
})

t.test('a delivery fails after its last attempt, and its message with it', async (t) => {
  const { service, ada, receiver, path } = await subscribed(t, { events: ['message.created', 'message.failed'] })
  receiver.respond = (response, { event }) => { response.writeHead(event.type === 'message.failed' ? 200 : 500).end() }
  const id = await send(ada)
  for (let attempt = 1; attempt <= 11; attempt++) {
    await eventually(async () => (await attemptsOf(ada, path)).length === attempt)
    await skipPause(service)
  }
  await becomes(ada, id, 'failed')
  await receiver.until(12)
  t.match(receiver.received.at(-1)!.event, { type: 'message.failed', data: { message: { id, status: 'failed' } } })
})

t.test('a webhook is disabled after a 410, and its pending deliveries fail', async (t) => {
  const { ada, receiver, path, ids, deliver } = await backlog(t, 30)
  receiver.respond = (response) => { response.writeHead(410).end() }
  const before = await ada.get(path)
  keepWaking(t, await deliver())
  for (const id of ids) await becomes(ada, id, 'failed')
  const disabled = await ada.get(path)
  t.equal(disabled.body.enabled, false)
  t.not(disabled.headers.etag, before.headers.etag, 'a 410 changes the webhook')
  t.ok(receiver.received.length < 30, `${receiver.received.length} requests`)
  const later = await send(ada)
  await becomes(ada, later, 'delivered')
  receiver.respond = (response) => { response.writeHead(200).end() }
  t.equal((await ada.patch(path, { enabled: true })).body.enabled, true)
  await becomes(ada, await send(ada), 'delivered')
})

t.test('a 410 does not disable a webhook that has moved to another address', async (t) => {
  const { ada, receiver, path, ids, deliver } = await backlog(t, 9)
  const unanswered: ServerResponse[] = []
  receiver.respond = (response, { path }, nth) => {
    // A receiver gets one request at a time until its first response.
    if (path.endsWith('/new') || nth === 1) response.writeHead(204).end()
    else unanswered.push(response)
  }
  await ada.post('/lab/clock/advance', { seconds: 3_600 })
  await deliver()
  await receiver.until(9)
  await ada.patch(path, { url: `${receiver.url}/new` })
  for (const response of unanswered) response.writeHead(410).end()
  for (const id of ids) await becomes(ada, id, 'delivered')
  t.equal((await ada.get(path)).body.enabled, true)
  t.equal(receiver.received.filter(({ path }) => path.endsWith('/new')).length, 8)
  const gone = (await attemptsOf(ada, path)).filter(({ status }) => status === 410)
  t.equal(gone.length, 8)
  t.ok(gone.every(({ at, nextTryAt }) => nextTryAt >= at), 'both times are of the account\'s clock')
})

t.test('events of an unreachable receiver are delivered later', async (t) => {
  const { service, ada, receiver, path } = await subscribed(t, { events: ['message.created'] })
  await receiver.close()
  const ids = await Promise.all(Array.from({ length: 5 }, async () => await send(ada)))
  await eventually(async () => (await attemptsOf(ada, path)).length === 5)
  t.match((await attemptsOf(ada, path))[0], { error: 'The address refused the connection', nextTryAt: String })
  const back = await openReceiver(t)
  await ada.patch(path, { url: back.url })
  await skipPause(service)
  for (const id of ids) await becomes(ada, id, 'delivered')
  t.equal(back.received.length, 5, 'at the new address')
})

t.test('deliveries of a disabled webhook wait until it is enabled, or fail after a day', async (t) => {
  const { service, ada, receiver, path } = await subscribed(t, { events: ['message.created'] })
  receiver.respond = (response) => { response.writeHead(500).end() }
  const [first, second] = [await send(ada), await send(ada)]
  await eventually(async () => (await attemptsOf(ada, path)).length === 2)
  await ada.patch(path, { enabled: false })
  await skipPause(service)
  await ada.patch(path, { events: ['message.created', 'pet.created'] })
  await new Promise((resolve) => setTimeout(resolve, 200))
  t.equal(receiver.received.length, 2, 'nothing is sent')
  t.equal((await ada.get(`/messages/${first}`)).body.status, 'processing')
  receiver.respond = (response) => { response.writeHead(200).end() }
  await ada.patch(path, { enabled: true })
  await becomes(ada, first, 'delivered')
  await becomes(ada, second, 'delivered')

  receiver.respond = (response) => { response.writeHead(500).end() }
  const third = await send(ada)
  await eventually(async () => (await attemptsOf(ada, path))[0].status === 500)
  await skipPause(service, true)
  await ada.patch(path, { enabled: false })
  await becomes(ada, third, 'failed')
})

t.test('messages do not wait for a deleted webhook', async (t) => {
  const { ada, receiver, path } = await subscribed(t, { events: ['message.created'] })
  receiver.respond = (response) => { response.writeHead(500).end() }
  const second = await openReceiver(t)
  await ada.post('/webhooks', { url: second.url, events: ['message.created'] })
  const ids = [await send(ada), await send(ada)]
  await second.until(2)
  await eventually(async () => (await attemptsOf(ada, path)).length === 2)
  for (const id of ids) t.equal((await ada.get(`/messages/${id}`)).body.status, 'processing')
  await ada.delete(path)
  for (const id of ids) await becomes(ada, id, 'delivered')
})
