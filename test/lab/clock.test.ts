import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { assertError, assertRejectsInput, assertReplayed, assertResponse } from '../support/checks.ts'
import { freshDatabase } from '../support/database.ts'
import { newPet } from '../support/fixtures.ts'
import { eventually, openReceiver } from '../support/receiver.ts'
import { openStream } from '../support/stream.ts'

const DAY_S = 86_400
const DAY_MS = DAY_S * 1_000

async function advance (client: Client, body: object): Promise<Answer> {
  const moved = await client.post('/lab/clock/advance', body)
  if (moved.status !== 200) throw new Error(moved.text)
  return moved
}

/** How far a time is ahead of real time, in days. */
function daysAhead (time: string): number {
  return Math.round((Date.parse(time) - Date.now()) / DAY_MS)
}

interface Route { method: NonNullable<InjectOptions['method']>, url: string }

/** Returns all routes, also those that the document does not list. An account is deleted last. */
function routesOf (app: FastifyInstance): Route[] {
  const routes: Route[] = []
  const segments: string[] = []
  for (const line of app.printRoutes({ commonPrefix: false }).split('\n')) {
    const [, indent = '', segment = '', methods = ''] = /^(.*)[├└]── (\S+)(?: \((.+)\))?$/.exec(line) ?? []
    segments.length = indent.length / 4
    segments.push(segment)
    const url = segments.join('').replace(/:\w+/g, '999999')
    for (const method of methods.split(', ').filter(Boolean)) routes.push({ method: method as Route['method'], url })
  }
  const isLast = ({ method, url }: Route): number => Number(method === 'DELETE' && url === '/account')
  return routes.sort((a, b) => isLast(a) - isLast(b))
}

t.test('the clock', async (t) => {
  const running = await startApp(t)
  const { app, openAccount, withKey } = running

  await t.test('bad input is refused with the field and the rule', async (t) => {
    const ada = await openAccount()
    await assertRejectsInput(t, async (body) => await ada.post('/lab/clock/advance', body), [
      [{}, 'The body must have seconds or to'],
      [{ seconds: 1, to: '2030-01-01T00:00:00Z' }, 'must have only one of seconds, to'],
      [{ seconds: 0 }, 'seconds must be 1 or more'],
      [{ seconds: 315_360_001 }, 'seconds must be 315360000 or less'],
      [{ seconds: 1.5 }, 'seconds must be an integer'],
      [{ to: 'tomorrow' }, 'to must be an RFC 3339'],
      [{ to: '2020-01-01T00:00:00Z' }, 'to must be later than the clock']
    ])
    await advance(ada, { to: '9999-12-30T00:00:00Z' })
    assertError(t, await ada.post('/lab/clock/advance', { seconds: 2 * DAY_S }), 400, 'validation_failed', '9999')
    t.equal((await ada.post('/messages', { message: 'x' }, { 'idempotency-key': 'late' })).status, 201)
  })

  await t.test('a key is remembered at the last instant, where the clock stops', async (t) => {
    const ada = await openAccount()
    const last = { to: '9999-12-31T23:59:59.999Z' }
    const moved = await ada.post('/lab/clock/advance', last, { 'idempotency-key': 'move' })
    t.equal(moved.status, 200)
    await eventually(async () => (await ada.get('/pets')).headers['petstore-clock'] === last.to)
    const replayed = await ada.post('/lab/clock/advance', last, { 'idempotency-key': 'move' })
    t.match(replayed, { status: 200, body: moved.body, headers: { 'idempotency-replayed': 'true' } })
    const first = await ada.post('/categories', { name: 'Dogs' }, { 'idempotency-key': 'add' })
    const again = await ada.post('/categories', { name: 'Dogs' }, { 'idempotency-key': 'add' })
    t.match(again, { status: 201, body: first.body, headers: { 'idempotency-replayed': 'true' } })
    t.equal((await ada.get('/categories')).body.length, 1)
  })

  await t.test('it only goes forward, its entity tag follows it, and each move is an event', async (t) => {
    const ada = await openAccount()
    const before = await ada.get('/lab/clock')
    assertResponse(t, before, 200, { offsetSeconds: 0 })
    t.equal(before.headers['petstore-clock'], undefined, 'an account in real time has no header')
    const moved = await advance(ada, { seconds: DAY_S })
    t.equal(moved.body.offsetSeconds, DAY_S)
    t.equal(daysAhead(moved.body.now), 1)
    const after = await ada.get('/lab/clock')
    assertResponse(t, after, 200, { offsetSeconds: DAY_S })
    t.not(after.headers.etag, before.headers.etag)
    t.equal(daysAhead(String(after.headers['petstore-clock'])), 1)
    t.ok(Math.abs(Date.parse(after.headers.date!) - Date.now()) < 60_000, 'Date stays real')
    const { body: [event] } = await ada.get('/events')
    t.equal(event.type, 'clock.advanced')
    t.equal(Math.round((Date.parse(event.data.to) - Date.parse(event.data.from)) / DAY_MS), 1)
    const again = await ada.post('/lab/clock/advance', { seconds: 1 }, { 'if-match': before.headers.etag! })
    assertError(t, again, 412, 'precondition_failed')
    const fresh = await ada.post('/lab/clock/advance', { seconds: 1 }, { 'if-match': after.headers.etag! })
    t.equal(fresh.status, 200, 'conditions refer to the clock')
    const to = new Date(Date.now() + 3 * DAY_MS).toISOString()
    const jumped = await advance(ada, { to })
    t.ok(jumped.body.now >= to)
    t.equal((await ada.post('/lab/reset', {})).status, 200)
    const { body: { offsetSeconds } } = await ada.get('/lab/clock')
    t.equal(offsetSeconds, jumped.body.offsetSeconds, 'a reset does not turn it back')
  })

  await t.test('each response to its account has its time, whatever the route', async (t) => {
    const ada = await openAccount()
    await advance(ada, { seconds: DAY_S })
    const found: string[] = []
    for (const { method, url } of routesOf(app)) {
      const send = async (headers: Record<string, string>): Promise<LightMyRequestResponse> =>
        await app.inject({ method, url, headers })
      if ((await send({})).statusCode !== 401) continue
      const { headers } = await send({ authorization: `Bearer ${ada.key}` })
      t.equal(daysAhead(String(headers['petstore-clock'])), 1, `${method} ${url}`)
      found.push(`${method} ${url}`)
    }
    for (const route of ['GET /pets', 'HEAD /pets', 'POST /lab/reset', 'POST /mcp', 'DELETE /account']) {
      t.ok(found.includes(route), route)
    }
  })

  await t.test('the sunset comes to one account alone', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const [hers, his] = [await newPet(ada), await newPet(bob)]
    const document = (await ada.get('/openapi.json')).text
    const { body: [{ id: categoryId }] } = await ada.get('/categories')
    const create = async (): Promise<Answer> =>
      await ada.post('/pets', { name: 'Max', categoryId }, { 'idempotency-key': 'sunset' })
    await advance(ada, { to: '2030-12-04T23:00:00Z' })
    const first = await create()
    await advance(ada, { to: '2030-12-05T00:00:00Z' })
    assertReplayed(t, await create(), first, 'a replay after the sunset')
    t.match(first.headers, { location: /^\/pets\/\d+$/ })
    const gone = await ada.get(`/pets/${hers}`)
    assertError(t, gone, 410, 'operation_sunset')
    const read = await bob.get(`/pets/${his}`)
    t.equal(read.status, 200)
    t.equal(read.headers['petstore-clock'], undefined)
    for (const name of ['deprecation', 'sunset']) t.equal(gone.headers[name], read.headers[name])
    t.equal((await ada.get(`/pets?id=${hers}`)).body.length, 1)
    t.match((await ada.post('/pets', { name: 'Rex', categoryId })).headers, { location: /^\/pets\?id=\d+$/ })
    t.equal((await ada.get('/openapi.json')).text, document)
  })

  await t.test('records and events have the time of their account, also in one group', async (t) => {
    const [ada, bob, eve] = [await openAccount(), await openAccount(), await openAccount()]
    await advance(ada, { seconds: 10 * DAY_S })
    await advance(bob, { seconds: 20 * DAY_S })
    const rounds = await Promise.all(Array.from({ length: 20 }, async () => await Promise.all(
      [ada, bob, eve].map(async (client) => await client.post('/messages', { message: 'x' })))))
    for (const answers of rounds) t.same(answers.map(({ body }) => daysAhead(body.createdAt)), [10, 20, 0])
    for (const [client, days] of [[ada, 10], [bob, 20], [eve, 0]] as const) {
      const { body: events } = await client.get('/events?limit=100')
      const created = events.filter(({ type }: any) => type === 'message.created')
      t.ok(created.length === 20 && created.every(({ timestamp }: any) => daysAhead(timestamp) === days))
      const key = await client.post('/account/keys', {})
      t.equal(daysAhead(key.body.createdAt), days)
      const webhook = await client.post('/webhooks', { url: 'https://example.com/' })
      t.equal(daysAhead(webhook.body.createdAt), days)
    }
  })

  await t.test('API keys expire, and their last use is of the clock', async (t) => {
    const ada = await openAccount()
    const expiresAt = new Date(Date.now() + 2 * DAY_MS).toISOString()
    const { body: { id, apiKey } } = await ada.post('/account/keys', { expiresAt })
    const other = withKey(apiKey)
    t.equal((await other.get('/pets')).status, 200)
    const stream = await openStream(running, other)
    await advance(ada, { seconds: DAY_S })
    t.equal((await other.get('/pets')).status, 200)
    await advance(ada, { seconds: DAY_S })
    assertError(t, await other.get('/pets'), 401, 'unauthorized', 'expired')
    await stream.ended
    await ada.get('/pets')
    const [own] = (await ada.get('/account/keys')).body
    assertError(t, await ada.delete(`/account/keys/${own.id}`), 409, 'last_api_key')
    t.equal(daysAhead((await ada.get(`/account/keys/${id}`)).body.lastUsedAt), 1)
    await eventually(async () => daysAhead((await ada.get(`/account/keys/${own.id}`)).body.lastUsedAt) === 2)
  })

  await t.test('idempotency keys are forgotten after 24 hours, but not that of the move itself', async (t) => {
    const ada = await openAccount()
    const send = async (): Promise<Answer> =>
      await ada.post('/messages', { message: 'x' }, { 'idempotency-key': 'one' })
    const move = async (): Promise<Answer> =>
      await ada.post('/lab/clock/advance', { seconds: 2 * DAY_S }, { 'idempotency-key': 'move' })
    const first = await send()
    t.equal((await send()).headers['idempotency-replayed'], 'true')
    const moved = await move()
    const again = await move()
    t.match(again, { status: 200, body: moved.body, headers: { 'idempotency-replayed': 'true' } })
    t.equal((await ada.get('/lab/clock')).body.offsetSeconds, 2 * DAY_S)
    const left = await app.database.prisma.idempotencyRecord.findMany({ where: { accountId: ada.account! } })
    t.same(left.map(({ key }) => key), ['move'], 'the record that expired is gone with the answer to the move')
    const anew = await send()
    t.equal(anew.headers['idempotency-replayed'], undefined)
    t.not(anew.body.id, first.body.id)
    // The key was used by a clock that was ahead, and its 24 hours began there.
    await advance(ada, { seconds: 23 * 3_600 })
    const replayed = await send()
    t.match(replayed, { body: anew.body, headers: { 'idempotency-replayed': 'true' } })
    await advance(ada, { seconds: 2 * 3_600 })
    t.equal((await send()).headers['idempotency-replayed'], undefined)
  })

  await t.test('events are kept for 30 days of the clock', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    await newPet(ada)
    await newPet(bob)
    await advance(ada, { seconds: 29 * DAY_S })
    t.equal((await ada.get('/events')).body[0].id, 1)
    await advance(ada, { seconds: 2 * DAY_S })
    const { body: [oldest] } = await ada.get('/events')
    t.equal(oldest.id, 3, 'only the moves are left')
    assertError(t, await ada.get('/events?after=1'), 410, 'events_expired')
    t.equal((await bob.get('/events')).body[0].id, 1)
  })
})

t.test('a service without the lab keeps moved clocks, also if it cannot read them at first', async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const { app: { database: { prisma } }, openAccount } = await startApp(t, { DATABASE_URL })
  const ada = await openAccount()
  const pet = await newPet(ada)
  await advance(ada, { to: '2030-12-05T00:00:00Z' })
  await prisma.$executeRawUnsafe('ALTER TABLE accounts RENAME COLUMN clock_offset_seconds TO renamed')
  const { app, withKey } = await startApp(t, { DATABASE_URL, LAB: 'false' })
  t.same(app.clocks.movedAccounts(), [])
  await prisma.$executeRawUnsafe('ALTER TABLE accounts RENAME COLUMN renamed TO clock_offset_seconds')
  await eventually(async () => (await withKey(ada.key!).get(`/pets/${pet}`)).status === 410)
})

t.test('deliveries follow the clock', async (t) => {
  const running = await startApp(t, { DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true' })
  const ada = await running.openAccount()
  const receiver = await openReceiver(t, (response) => { response.writeHead(500).end() })
  const { body: { id, secret } } = await ada.post('/webhooks', { url: receiver.url, events: ['message.created'] })

  await t.test('a retry that is days away comes with the move', async (t) => {
    await ada.post('/messages', { message: 'x' })
    await receiver.until(1)
    for (let attempt = 2; attempt <= 4; attempt++) {
      await eventually(async () => (await ada.get(`/webhooks/${id}/attempts`)).body.length === attempt - 1)
      await advance(ada, { seconds: 3_600 })
      await receiver.until(attempt)
    }
    await eventually(async () => (await ada.get(`/webhooks/${id}/attempts`)).body.length === 4)
    const [last] = (await ada.get(`/webhooks/${id}/attempts`)).body
    t.ok(Date.parse(last.at) - Date.now() > 2 * 3_600_000, 'attempts have the time of the clock')
    const { headers, event } = receiver.received.at(-1)!
    t.ok(Math.abs(Number(headers['webhook-timestamp']) * 1_000 - Date.now()) < 60_000, 'the signature stays real')
    t.doesNotThrow(() => new Webhook(secret).verify(JSON.stringify(event), headers as Record<string, string>))
  })

  await t.test('the day of a delivery ends', async (t) => {
    await advance(ada, { seconds: DAY_S })
    await eventually(async () => (await ada.get('/messages')).body[0].status === 'failed')
    const { body: events } = await ada.get('/events?limit=100')
    t.ok(events.some(({ type }: any) => type === 'message.failed'))
  })

  await t.test('after a rotation the old secret signs for 24 hours of the clock', async (t) => {
    receiver.respond = (response) => { response.writeHead(204).end() }
    await ada.post(`/webhooks/${id}/rotate`, undefined)
    const signatures = async (): Promise<number> => {
      const count = receiver.received.length
      await ada.post('/messages', { message: 'x' })
      await receiver.until(count + 1)
      return String(receiver.received.at(-1)!.headers['webhook-signature']).split(' ').length
    }
    t.equal(await signatures(), 2)
    await advance(ada, { seconds: DAY_S + 1 })
    t.equal(await signatures(), 1)
  })
})
