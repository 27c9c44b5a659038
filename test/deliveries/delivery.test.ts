import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { ifMatch, ifNoneMatch } from '../contract/fields.ts'
import { createMessage, messageSecret } from '../../src/messages/commands.ts'
import { completeDeliveries, type Completion } from '../../src/deliveries/complete.ts'
import { createWebhook, webhookSecret } from '../../src/webhooks/commands.ts'
import { claimDeliveries, type ClaimedDelivery, type ClaimResult } from '../../src/deliveries/claim.ts'
import { startApp, type Client } from '../support/app.ts'
import { assertResponse } from '../support/checks.ts'
import { attemptsOf, backlog, becomes, DELIVERING, send, subscribed } from '../support/delivery.ts'
import { eventually, openReceiver } from '../support/receiver.ts'

t.test('a message without webhooks is delivered, with its event', async (t) => {
  const { openAccount } = await startApp(t, { DELIVERY: 'true' })
  const ada = await openAccount()
  const created = await ada.post('/messages', { message: 'Hello' })
  t.match(created, { status: 201, body: { status: 'queued' }, headers: { etag: '"1"' } })
  await becomes(ada, created.body.id, 'delivered')
  const { body: message, headers } = await ada.get(`/messages/${created.body.id}`)
  t.equal(headers.etag, '"2"')
  t.same(message, { ...created.body, status: 'delivered' })
  const { body: events } = await ada.get('/events')
  t.match(events, [
    { id: 1, type: 'message.created', data: { message: created.body } },
    { id: 2, type: 'message.delivered', data: { message } }
  ])
})

t.test('an event is sent as GET /events shows it, signed, and its attempt is shown', async (t) => {
  const { ada, receiver, path } = await subscribed(t)
  const { body: category } = await ada.post('/categories', { name: 'Dogs' })
  const id = await send(ada)
  await becomes(ada, id, 'delivered')
  await receiver.until(3)
  const { body: events } = await ada.get('/events')
  // They are sent at the same time, on connections of their own.
  const received = receiver.received.toSorted((a, b) => a.event.id - b.event.id)
  t.same(received.map(({ event }) => event), events)
  t.same(events.map(({ type }: { type: string }) => type), ['category.created', 'message.created', 'message.delivered'])
  t.same(received.map(({ id }) => id), [1, 2, 3].map((event) => `evt_${ada.account}_${event}`))
  t.equal(category.name, 'Dogs')
  t.match(receiver.received[0]!.headers, {
    'content-type': 'application/json; charset=utf-8',
    'webhook-timestamp': /^\d{10}$/,
    'webhook-signature': /^v1,\S+$/
  })
  await eventually(async () => (await attemptsOf(ada, path)).length === 3)
  const attempts = await attemptsOf(ada, path)
  t.same(attempts.map(({ eventId, status }) => `${eventId} ${status}`).sort(), ['1 204', '2 204', '3 204'])
  t.same(Object.keys(attempts[0]), ['id', 'eventId', 'at', 'status', 'durationMs'])
})

t.test('only events of subscribed types are sent, and only while they are subscribed to', async (t) => {
  const { ada, receiver, path } = await subscribed(t, { events: ['category.deleted', 'message.created'] })
  const { body: { id } } = await ada.post('/categories', { name: 'Dogs' })
  await ada.patch(path, { events: ['category.deleted'] })
  const message = await send(ada)
  await becomes(ada, message, 'delivered')
  await ada.patch(path, { enabled: false })
  await ada.post('/categories', { name: 'Cats' })
  await ada.patch(path, { enabled: true })
  await ada.delete(`/categories/${id}`)
  await receiver.until(1)
  t.same(receiver.received.map(({ event }) => event.type), ['category.deleted'])
})

t.test('a message is sent to a webhook that the same transaction created before it', async (t) => {
  const service = await startApp(t, { ...DELIVERING, DELIVERY: 'false' })
  const account = (await service.openAccount()).account!
  const { commit, database } = service.app
  const webhook = { url: 'https://shop.example/', events: ['message.created'], enabled: true }
  await Promise.all([
    commit(createWebhook, { webhook, secret: webhookSecret() }, { account }),
    commit(createMessage, { message: { message: 'Hello' }, secret: messageSecret() }, { account })
  ])
  t.equal(await database.prisma.delivery.count(), 1)
})

t.test('events are sent in order, up to 8 at a time', async (t) => {
  const { receiver, deliver } = await backlog(t, 100)
  // After its first response, it answers when it has 8 requests for the first time.
  const waiting: ServerResponse[] = []
  receiver.respond = (response, _received, nth) => {
    waiting.push(response)
    if (nth === 1 || receiver.most >= 8) for (const one of waiting.splice(0)) one.writeHead(200).end()
  }
  await deliver()
  await receiver.until(100)
  t.equal(receiver.most, 8)
  const ids = receiver.received.map(({ event }) => event.id)
  t.ok(ids.every((id, i) => i < 8 || ids[i - 8]! < id), 'no event overtakes more than the requests in flight')
  t.equal(new Set(ids).size, 100)
})

t.test('a returned delivery keeps its place before newer events', async (t) => {
  const { service: { app }, ada, path } = await backlog(t, 5)
  const webhookId = Number(path.split('/').at(-1))
  const target = { webhookId, account: ada.account! }
  const claim = async (limit: number): Promise<ClaimedDelivery[]> =>
    (await app.commit(claimDeliveries, { ...target, worker: 'a', limit }, { account: null })).record.claimed
  const first = await claim(3)
  await Promise.all([...first].reverse().map(async ({ id, lease, message, url }) => {
    const completion = { id, ...target, lease, message, url, result: 'returned' as const }
    return await app.commit(completeDeliveries, completion, { account: null })
  }))
  const again = await claim(2)
  t.same(again.map(({ event, attempts }) => [event, attempts]), first.slice(0, 2).map(({ event }) => [event, 1]))
  const last = first[2]!.event
  t.same((await claim(5)).map(({ event }) => event), [last, last + 1, last + 2])
  t.equal((await ada.get('/events')).body.length, 5)
})

t.test('deliveries are claimed in the order of their due times, also when they were not sent', async (t) => {
  const { service: { app }, ada, path } = await backlog(t, 4)
  const target = { webhookId: Number(path.split('/').at(-1)), account: ada.account! }
  const claim = async (worker: string): Promise<ClaimedDelivery[]> =>
    (await app.commit(claimDeliveries, { ...target, worker, limit: 8 }, { account: null })).record.claimed
  const complete = async (claimed: ClaimedDelivery[], result: Partial<Completion>): Promise<void> => {
    await Promise.all(claimed.map(async ({ id, lease, message, url }) => {
      const completion = { id, ...target, lease, message, url, result: 'returned' as const, ...result }
      return await app.commit(completeDeliveries, completion, { account: null })
    }))
  }

  // The later the event, the sooner is its retry.
  const now = Date.now()
  for (const [i, delivery] of (await claim('a')).entries()) {
    const attempt = {
      eventId: delivery.event,
      at: new Date(now).toISOString(),
      status: 500,
      durationMs: 1,
      nextTryAt: new Date(now + (10 - i) * 60_000).toISOString()
    }
    await complete([delivery], { result: 'retry', attempt })
  }
  await send(ada)
  await ada.post('/lab/clock/advance', { seconds: 3_600 })

  // The events 5 to 8 say that the messages are tried.
  const inOrder = [[9, 1], [4, 2], [3, 2], [2, 2], [1, 2]]
  const claimed = await claim('a')
  t.same(claimed.map(({ event, attempts }) => [event, attempts]), inOrder)
  await complete(claimed.toReversed(), { result: 'returned' })
  const again = await claim('a')
  t.same(again.map(({ event, attempts }) => [event, attempts]), inOrder, 'returned')
  await app.database.prisma.delivery.updateMany({ where: { leasedBy: { not: null } }, data: { nextTryAt: new Date() } })
  const lost = await claim('b')
  t.same(lost.map(({ event, attempts }) => [event, attempts]), inOrder, 'expired')
})

t.test('first attempts are claimed in the order of their events', async (t) => {
  const { service: { app }, ada, path } = await backlog(t, 4)
  // As of two groups that write at a time.
  const { prisma } = app.database
  const due = Date.now() - 1_000
  for (const { id, eventId } of await prisma.delivery.findMany()) {
    await prisma.delivery.update({ where: { id }, data: { nextTryAt: new Date(due - Number(eventId)) } })
  }
  const input = { webhookId: Number(path.split('/').at(-1)), account: ada.account!, worker: 'a', limit: 8 }
  const { record: { claimed } } = await app.commit(claimDeliveries, input, { account: null })
  t.same(claimed.map(({ event }) => event), [1, 2, 3, 4])
})

t.test('deliveries with an expired lease are claimed before newer events', async (t) => {
  const { service: { app }, ada, path } = await backlog(t, 3)
  const target = { webhookId: Number(path.split('/').at(-1)), account: ada.account! }
  const claim = async (worker: string): Promise<ClaimResult> =>
    (await app.commit(claimDeliveries, { ...target, worker, limit: 2 }, { account: null })).record
  const lost = (await claim('a')).claimed.map(({ event }) => event)
  t.match(await claim('b'), { claimed: [], isBusy: true }, 'no other worker claims while the lease lasts')
  await send(ada)
  // Versions that did not store the due time leave it out.
  const lease = { leasedBy: { not: null } }
  await app.database.prisma.delivery.updateMany({ where: lease, data: { nextTryAt: new Date(), dueAt: null } })
  const { claimed } = await claim('b')
  t.same(claimed.map(({ event, attempts }) => [event, attempts]), lost.map((event) => [event, 1]))
  t.same((await claim('b')).claimed.map(({ event }) => event), [lost[1]! + 1, lost[1]! + 2])
})

t.test('after a webhook is changed or deleted, only requests in flight use its old settings', async (t) => {
  for (const [name, change] of [
    ['moved', async (ada: Client, path: string, url: string) =>
      await ada.patch(path, { url: `${url}/new` })],
    ['disabled', async (ada: Client, path: string) => await ada.patch(path, { enabled: false })],
    ['deleted', async (ada: Client, path: string) => await ada.delete(path)],
    ['deleted with its account', async (ada: Client) => await ada.delete('/account')]
  ] as const) {
    const { ada, receiver, path, deliver } = await backlog(t, 100)
    // Quick responses at first, so that the dispatcher claims a reserve, and slow ones after them.
    receiver.respond = (response, _received, nth) => {
      setTimeout(() => { response.writeHead(204).end() }, nth <= 10 ? 0 : 200)
    }
    const service = await deliver()
    await receiver.until(20)
    t.ok((await change(service.withKey(ada.key!), path, receiver.url)).status < 300)
    const before = receiver.received.length
    if (name === 'moved') await eventually(() => receiver.received.some(({ path }) => path.endsWith('/new')))
    else await sleep(700)
    const late = receiver.received.slice(before).filter(({ path }) => !path.endsWith('/new')).length
    t.ok(late <= 8, `${name}: ${late} requests after the change`)
    await service.app.close()
  }
})

t.test('a delivery of a disabled webhook expires after its day, also behind one that expires later', async (t) => {
  const { service: { app }, ada, ids, path, deliver } = await backlog(t, 2)
  await ada.patch(path, { enabled: false })
  const hour = 3_600_000
  const times = [{ next: -hour, end: hour }, { next: hour, end: -hour }]
  const { delivery } = app.database.prisma
  const pending = await delivery.findMany({ orderBy: { eventId: 'asc' }, select: { id: true } })
  for (const [i, { next, end }] of times.entries()) {
    const data = { nextTryAt: new Date(Date.now() + next), giveUpAt: new Date(Date.now() + end) }
    await delivery.update({ where: { id: pending[i]!.id }, data })
  }
  await deliver()
  await becomes(ada, ids[1]!, 'failed')
  t.equal((await ada.get(`/messages/${ids[0]}`)).body.status, 'queued')
})

t.test('a redirection is not followed', async (t) => {
  const { ada, receiver, path } = await subscribed(t, { events: ['message.created'] })
  const other = await openReceiver(t)
  receiver.respond = (response) => { response.writeHead(307, { location: other.url }).end() }
  await send(ada)
  await eventually(async () => (await attemptsOf(ada, path)).length === 1)
  t.match((await attemptsOf(ada, path)), [{ status: 307, nextTryAt: String }])
  t.equal(other.received.length, 0)
})

t.test('a private address that was allowed before is not called any more', async (t) => {
  const before = await startApp(t, { WEBHOOKS_ALLOW_PRIVATE: 'true' })
  const ada = await before.openAccount()
  const receiver = await openReceiver(t)
  const urls = [receiver.url, receiver.url.replace('127.0.0.1', 'localhost')]
  const hooks = await Promise.all(urls.map(async (url) => (await ada.post('/webhooks', { url })).body))
  await send(ada)
  const now = await startApp(t, { DELIVERY: 'true', DATABASE_URL: before.config.DATABASE_URL })
  const client = now.withKey(ada.key!)
  for (const { id } of hooks) {
    await eventually(async () => (await attemptsOf(client, `/webhooks/${id}`)).length > 0)
    const [attempt] = await attemptsOf(client, `/webhooks/${id}`)
    t.match(attempt, { error: /^The address is not public, .* WEBHOOKS_ALLOW_PRIVATE/, nextTryAt: String })
    t.equal(attempt.status, undefined)
  }
  t.equal(receiver.received.length, 0)
})

t.test('both secrets sign after a rotation', async (t) => {
  const { service, ada, receiver, path, secret } = await subscribed(t, { events: ['message.created'] })
  const { body: rotated } = await ada.request('POST', `${path}/rotate`)
  for (const secrets of [[secret], [rotated.secret]]) {
    receiver.secrets = secrets
    await becomes(ada, await send(ada), 'delivered')
  }
  t.match(receiver.received[0]!.headers['webhook-signature'], /^v1,\S+ v1,\S+$/)
  await service.app.database.prisma.webhook.updateMany({ data: { previousUntil: new Date(Date.now() - 1_000) } })
  await becomes(ada, await send(ada), 'delivered')
  t.match(receiver.received[2]!.headers['webhook-signature'], /^v1,\S+$/)
})

t.test('a test is sent once, without an event in GET /events, also when the webhook is disabled', async (t) => {
  const { ada, receiver, path } = await subscribed(t, { enabled: false })
  receiver.respond = (response) => { response.writeHead(500).end() }
  for (let i = 0; i < 2; i++) assertResponse(t, await ada.request('POST', `${path}/test`), 202, { webhookId: Number(path.split('/')[2]) })
  await receiver.until(2)
  t.match(receiver.received[0]!.event, { id: 0, type: 'webhook.test', timestamp: String, data: { webhookId: Number } })
  t.match(receiver.received[0]!.id, /^evt_\d+_test_\d+$/)
  t.not(receiver.received[0]!.id, receiver.received[1]!.id)
  await eventually(async () => (await attemptsOf(ada, path)).length === 2)
  const attempts = await attemptsOf(ada, path)
  const attempt = { eventId: 0, status: 500, nextTryAt: undefined }
  t.same(
    attempts.map(({ eventId, status, nextTryAt }: Record<string, unknown>) => ({ eventId, status, nextTryAt })),
    [attempt, attempt])
  t.equal((await ada.get('/events')).headers['event-id'], '0')
})

t.test('the attempts are a list with a tag of its own, and leave the tag of the webhook alone', async (t) => {
  const { ada, receiver, path } = await subscribed(t, { events: ['message.created'] })
  const webhook = await ada.get(path)
  const none = await ada.get(`${path}/attempts`)
  assertResponse(t, none, 200, [])
  for (let i = 0; i < 5; i++) await becomes(ada, await send(ada), 'delivered')
  const { body: attempts, headers: { etag, link } } = await ada.get(`${path}/attempts`)
  t.not(etag, none.headers.etag)
  t.equal(link, `<${path}/attempts>; rel="first"`)
  t.equal((await ada.get(`${path}/attempts`, ifNoneMatch(etag))).status, 304)
  t.equal((await ada.get(path)).headers.etag, webhook.headers.etag)
  assertResponse(t, await ada.get(path), 200, webhook.body)
  assertResponse(t, await ada.patch(path, { enabled: true }, ifMatch(webhook.headers.etag)), 200, webhook.body)
  const shown = attempts.map(({ eventId }: { eventId: number }) => `evt_${ada.account}_${eventId}`)
  t.same(shown, receiver.received.map(({ id }) => id).reverse())
})

t.test('a stop aborts the requests in flight and loses no event, and a start sends each once', async (t) => {
  const { ada, receiver, path, ids, deliver } = await backlog(t, 50)
  // The first response is quick, so that 8 requests follow it at once.
  receiver.respond = (response, _received, nth) => { if (nth === 1 || nth > 9) response.writeHead(200).end() }
  const first = await deliver()
  await receiver.until(9)
  await first.app.close()
  // The receiver notices it a moment later.
  await eventually(() => receiver.open === 0)
  t.match((await attemptsOf(ada, path)), { length: 1 }, 'none of the 8 requests ended by itself')
  await deliver()
  for (const id of ids) await becomes(ada, id, 'delivered')
  t.equal(receiver.received.length, 58)
  t.ok(receiver.most <= 8, `${receiver.most} at a time`)
})

t.test('two workers never send one delivery at the same time, nor more than 8 together', async (t) => {
  const { service, ada, receiver } = await subscribed(t, { events: ['message.created'] })
  const other = await startApp(t, { ...DELIVERING, DATABASE_URL: service.config.DATABASE_URL })
  const elsewhere = other.withKey(ada.key!)
  receiver.respond = (response) => { setTimeout(() => { response.writeHead(200).end() }, Math.random() * 10) }
  const ids = await Promise.all(Array.from({ length: 300 }, async (_, i) => await send(i % 2 === 0 ? ada : elsewhere)))
  for (const id of ids) await becomes(ada, id, 'delivered')
  t.equal(receiver.received.length, 300)
  t.equal(new Set(receiver.received.map(({ id }) => id)).size, 300)
  t.ok(receiver.most <= 8, `${receiver.most} at a time`)
})
