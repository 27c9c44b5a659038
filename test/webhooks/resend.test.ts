import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { ifMatch } from '../contract/fields.ts'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { assertError, assertReplayed, assertRejectsInput, assertResponse } from '../support/checks.ts'
import { attemptsOf, backlog, becomes, DELIVERING, send, subscribed, type Subscription } from '../support/delivery.ts'
import { newWebhook } from '../support/fixtures.ts'
import { eventually, openReceiver } from '../support/receiver.ts'

t.test('events are sent again', async (t) => {
  const service = await startApp(t, DELIVERING)
  const { app, openAccount } = service

  /** Opens a store whose webhook has accepted some messages. @returns it, with the ids of their events */
  async function delivered (messages: number, fields: object = {}): Promise<Subscription & { events: number[] }> {
    const ada = await openAccount()
    const receiver = await openReceiver(t)
    const { body: { id, secret } } =
      await ada.post('/webhooks', { url: receiver.url, events: ['message.created'], ...fields })
    receiver.secrets = [secret]
    const events: number[] = []
    for (let i = 0; i < messages; i++) {
      await becomes(ada, await send(ada), 'delivered')
      events.push(receiver.received.at(-1)!.event.id)
    }
    return { service, ada, receiver, path: `/webhooks/${id}`, secret, events }
  }

  const resend = async ({ ada, path }: Subscription, body: object, headers = {}): Promise<Answer> =>
    await ada.post(`${path}/resend`, body, headers)

  await t.test('with the same webhook-id and body, and a new signature', async (t) => {
    const setting = await delivered(2)
    const { receiver, events: [eventId], secret } = setting
    const [before] = receiver.received
    // The time of a signature has seconds.
    await eventually(() => Date.now() / 1000 >= Number(before!.headers['webhook-timestamp']) + 1)
    assertResponse(t, await resend(setting, { eventId }), 202, { queued: 1 })
    await receiver.until(3)
    const again = receiver.received[2]!
    t.same([again.id, again.body], [before!.id, before!.body])
    t.ok(Number(again.headers['webhook-timestamp']) > Number(before!.headers['webhook-timestamp']))
    t.not(again.headers['webhook-signature'], before!.headers['webhook-signature'])
    new Webhook(secret).verify(again.body, again.headers as Record<string, string>)
  })

  await t.test('a range, in the order of its events, only of some types', async (t) => {
    const setting = await delivered(5)
    const { ada, receiver, events } = setting
    // A receiver that is slow gets one request at a time, so that the order of arrival is that of the start.
    receiver.respond = (response) => { setTimeout(() => { response.writeHead(204).end() }, 110) }
    const { body: { queued } } = await resend(setting, { from: 1, to: events.at(-1)! })
    t.equal(queued, 5, 'the webhook does not receive message.delivered')
    await receiver.until(10)
    t.same(receiver.received.slice(5).map(({ event }) => event.id), events)
    t.match((await resend(setting, { from: 1, to: 2, types: ['message.delivered'] })).body, { queued: 0 })
    await ada.patch(setting.path, { events: ['message.created', 'message.delivered'] })
    t.match((await resend(setting, { from: 1, to: 4, types: ['message.delivered'] })).body, { queued: 2 })
    await receiver.until(12)
    t.same(receiver.received.slice(10).map(({ event }) => event.type), ['message.delivered', 'message.delivered'])
    t.equal((await ada.get('/messages')).body[0].status, 'delivered')
  })

  await t.test('once for a repeated request with the same Idempotency-Key', async (t) => {
    const setting = await delivered(1)
    const { receiver, events: [eventId] } = setting
    const first = await resend(setting, { eventId }, { 'idempotency-key': 'again' })
    assertReplayed(t, await resend(setting, { eventId }, { 'idempotency-key': 'again' }), first, 'the same response')
    await receiver.until(2)
    await becomes(setting.ada, await send(setting.ada), 'delivered')
    t.equal(receiver.received.length, 3)
  })

  await t.test('what never was, what has expired, and what is no range', async (t) => {
    const setting = await delivered(3)
    const { ada, path } = setting
    const newest = Number((await ada.get('/events')).headers['event-id'])
    assertError(t, await resend(setting, { eventId: newest + 1 }), 409, 'unknown_event', `no event after ${newest}`)
    assertError(t, await resend(setting, { from: 1, to: newest + 1 }), 409, 'unknown_event')
    await app.database.prisma.event.deleteMany({ where: { accountId: ada.account!, id: { lte: 2 } } })
    assertError(t, await resend(setting, { eventId: 2 }), 410, 'events_expired', 'the oldest stored event is 3')
    assertError(t, await resend(setting, { from: 2, to: 3 }), 410, 'events_expired')
    t.equal((await resend(setting, { from: 3, to: 3 })).status, 202)
    await assertRejectsInput(t, async (body: unknown) => await ada.post(`${path}/resend`, body), [
      [{}, 'must have eventId or from or to'],
      [{ eventId: 0 }, 'eventId must be 1 or more'],
      [{ from: 1, to: 2, types: [] }, 'types must have at least 1 item'],
      [{ from: 1, to: 2, only: 'delivered' }, 'only must be failed']
    ])
    assertError(t, await resend(setting, { eventId: 3 }, ifMatch('"9"')), 412, 'precondition_failed')
    // The schema cannot say how far apart they may be, so a request that it allows is not 400 for that.
    assertError(t, await ada.post(`${path}/resend`, { from: 1, to: 10_001 }), 409, 'unknown_event')
    assertError(t, await ada.post('/webhooks/4711/resend', { from: 1, to: 10_001 }), 404, 'webhook_not_found')
  })

  await t.test('not of another account, nor to a webhook of another account', async (t) => {
    const { path } = await delivered(1)
    const eve = await openAccount()
    assertError(t, await eve.post(`${path}/resend`, { eventId: 1 }), 404, 'webhook_not_found')
    const own = `/webhooks/${await newWebhook(eve)}/resend`
    assertError(t, await eve.post(own, { eventId: 1 }), 409, 'unknown_event', 'no event after 0')
  })

  await t.test('nothing to a disabled webhook', async (t) => {
    const setting = await delivered(1)
    await setting.ada.patch(setting.path, { enabled: false })
    assertResponse(t, await resend(setting, { eventId: setting.events[0] }), 202, { queued: 0 })
  })

  await t.test('what waits for a retry is sent at once, and not twice', async (t) => {
    const setting = await delivered(0)
    const { ada, receiver, path } = setting
    receiver.respond = (response) => { response.writeHead(503).end() }
    const id = await send(ada)
    await becomes(ada, id, 'processing')
    receiver.respond = (response) => { response.writeHead(204).end() }
    assertResponse(t, await resend(setting, { from: 1, to: 1, only: 'failed' }), 202, { queued: 1 })
    await becomes(ada, id, 'delivered')
    assertResponse(t, await resend(setting, { from: 1, to: 1, only: 'failed' }), 202, { queued: 0 }, 'it was accepted')
    t.equal(receiver.received.length, 2)
    t.equal((await attemptsOf(ada, path)).length, 2)
  })

  await t.test('what meets each member', async (t) => {
    const setting = await delivered(4)
    const { ada, path, receiver } = setting
    const [first, second, , last] = setting.events as [number, number, number, number]
    const numbers: Array<[selection: object, events: number[]]> = [
      [{ to: second }, [first, second]],
      [{ from: last }, [last]],
      [{ types: ['message.created'] }, setting.events],
      [{ eventId: second, from: first, to: last, types: ['message.created'] }, [second]],
      [{ eventId: second, types: ['message.delivered'] }, []],
      [{ eventId: first, from: second }, []],
      [{ from: last, to: first }, []],
      [{ only: 'failed' }, []]
    ]
    let received = 4
    for (const [selection, events] of numbers) {
      assertResponse(t, await resend(setting, selection), 202, { queued: events.length }, JSON.stringify(selection))
      // An event that is in flight is not sent again.
      await eventually(async () => (await attemptsOf(ada, path)).length === received + events.length)
      t.same(receiver.received.slice(received).map(({ event }) => event.id).sort((a, b) => a - b), events)
      received += events.length
    }
  })

  await t.test('what is in flight, or waits for its first attempt, is not sent twice', async (t) => {
    const setting = await delivered(0)
    const { ada, receiver } = setting
    const calls: Array<() => void> = []
    receiver.respond = (response) => { calls.push(() => { response.writeHead(204).end() }) }
    // The first request occupies a receiver that was not called before.
    const ids = [await send(ada), await send(ada)]
    await receiver.until(1)
    const newest = Number((await ada.get('/events')).headers['event-id'])
    assertResponse(t, await resend(setting, { from: 1, to: newest }), 202, { queued: 0 })
    receiver.respond = (response) => { response.writeHead(204).end() }
    for (const end of calls) end()
    for (const id of ids) await becomes(ada, id, 'delivered')
    t.equal(receiver.received.length, 2)
  })

  await t.test('only what failed, also after a 410, and the message stays failed', async (t) => {
    const setting = await delivered(2)
    const { ada, receiver, path } = setting
    receiver.respond = (response) => { response.writeHead(410).end() }
    const id = await send(ada)
    await becomes(ada, id, 'failed')
    receiver.respond = (response) => { response.writeHead(204).end() }
    await ada.patch(path, { enabled: true })
    const newest = Number((await ada.get('/events')).headers['event-id'])
    assertResponse(t, await resend(setting, { from: 1, to: newest, only: 'failed' }), 202, { queued: 1 })
    await receiver.until(4)
    t.equal(receiver.received[3]!.event.data.message.id, id)
    await eventually(async () => (await attemptsOf(ada, path))[0].status === 204)
    t.equal((await ada.get(`/messages/${id}`)).body.status, 'failed')
    assertResponse(t, await resend(setting, { from: 1, to: newest, only: 'failed' }), 202, { queued: 0 })
  })
})

t.test('what is sent again waits for a day while its webhook is disabled', async (t) => {
  const { ada, receiver, path, service: { app: { database: { prisma } } }, deliver } = await backlog(t, 2)
  const old = { attempts: 1, giveUpAt: new Date(Date.now() - 1_000) }
  await prisma.delivery.updateMany({ where: { eventId: 1 }, data: { ...old, state: 'failed' } })
  await prisma.delivery.updateMany({ where: { eventId: 2 }, data: old })
  assertResponse(t, await ada.post(`${path}/resend`, { only: 'failed' }), 202, { queued: 2 })
  await ada.patch(path, { enabled: false })
  await ada.post(`${path}/test`, undefined)
  await deliver()
  await eventually(async () => (await attemptsOf(ada, path)).length === 1)
  await ada.patch(path, { enabled: true })
  await receiver.until(3)
})

t.test('10,000 events are enqueued in one short transaction', async (t) => {
  const settings = { ...DELIVERING, DELIVERY: 'false' }
  const { ada, service: { app }, path } = await subscribed(t, { events: ['pet.created'] }, settings)
  const accountId = ada.account!
  const newest = 10_100
  // Two calls: Prisma splits a larger one, and sends the parts at once, which node-postgres deprecates.
  for (const [from, to] of [[1, 5_000], [5_001, newest]] as const) {
    await app.database.prisma.event.createMany({
      data: Array.from({ length: to - from + 1 }, (_, i) => ({
        accountId, id: from + i, type: i % 2 === 0 ? 'pet.created' : 'pet.updated', timestamp: new Date(), data: '{}'
      }))
    })
  }
  await app.database.prisma.account.update({ where: { id: accountId }, data: { lastEventId: newest } })
  const began = performance.now()
  assertResponse(t, await ada.post(`${path}/resend`, { from: 101, to: newest }), 202, { queued: 5_000 })
  t.comment(`${Math.round(performance.now() - began)} ms`)
  await ada.patch(path, { events: ['pet.created', 'pet.updated'] })
  // By default, the newest 10,000.
  assertResponse(t, await ada.post(`${path}/resend`, { types: ['pet.created', 'pet.updated'] }), 202, { queued: 5_000 })
  t.equal(await countOf(ada), 10_000)
  for (const range of [{ from: 100 }, { from: 100, to: newest }, { from: 1, to: 10_001 }]) {
    assertError(t, await ada.post(`${path}/resend`, range), 400, 'validation_failed',
      'to must be at most 9999 more than from; by default, it is the newest event')
  }
  assertResponse(t, await ada.post(`${path}/resend`, { from: 1, to: 10_000 }), 202, { queued: 100 })

  async function countOf ({ account }: Client): Promise<number> {
    return await app.database.prisma.delivery.count({ where: { accountId: account!, attempts: 0 } })
  }
})
