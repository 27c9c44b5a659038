import type { Socket } from 'node:net'
import t from 'tap'
import { startApp, type Client } from '../support/app.ts'
import { database } from '../support/database.ts'
import { DELIVERING } from '../support/delivery.ts'
import { copied, listed, mirror, walkEvents, walkStillStore, walkStore } from '../support/mirror.ts'
import { eventually, openReceiver } from '../support/receiver.ts'
import { openStream, type StreamedEvent } from '../support/stream.ts'

t.test('events need an API key', async (t) => {
  const { nobody } = await startApp(t)
  t.equal((await nobody.get('/events')).status, 401)
})

t.test('invalid positions are rejected', async (t) => {
  const { openAccount } = await startApp(t)
  const store = await openAccount()
  for (const query of ['after=-1', 'after=x', 'after=1&after=2', 'limit=0', 'limit=101', 'cursor=1']) {
    t.equal((await store.get(`/events?${query}`)).body.code, 'validation_failed', query)
  }
  for (const field of ['x', '-1', '1.5', '01', '99999999999999999999']) {
    const { body } = await store.get('/events', { accept: 'text/event-stream', 'last-event-id': field })
    t.equal(body.code, 'validation_failed', field)
  }
})

t.test('a position beyond the newest means after the newest', async (t) => {
  const { openAccount } = await startApp(t)
  const store = await openAccount()
  await store.post('/messages', { message: 'Hello' })
  for (const position of ['7', '9007199254740993', '9223372036854775807']) {
    const { status, body, headers } = await store.get(`/events?after=${position}`)
    t.same({ status, body, newest: headers['event-id'] }, { status: 200, body: [], newest: '1' }, position)
    const stream = await store.request('HEAD', '/events', {
      headers: { accept: 'text/event-stream', 'last-event-id': position }
    })
    t.same({ status: stream.status, newest: stream.headers['event-id'] }, { status: 200, newest: '1' }, position)
  }
})

t.test('Last-Event-ID precedes `after`, in both representations', async (t) => {
  const service = await startApp(t)
  const store = await service.openAccount()
  for (const message of ['One', 'Two', 'Three']) await store.post('/messages', { message })
  const position = { 'last-event-id': '2' }
  t.match((await store.get('/events?after=0', position)).body, [{ id: 3 }])
  t.equal((await store.get('/events?after=0', { 'last-event-id': '' })).body.length, 3, 'an empty one counts as absent')
  t.equal((await store.get('/events', { 'last-event-id': 'x' })).body.code, 'validation_failed')
  const stream = await openStream(service, store, { path: '/events?after=0', headers: position })
  await stream.until(1)
  t.match(stream.events, [{ id: 3 }])
  stream.close()
})

t.test('Accept selects the representation by its weights', async (t) => {
  const { openAccount } = await startApp(t)
  const store = await openAccount()
  const fields: Array<[accept: string | undefined, isStream: boolean]> = [
    [undefined, false],
    ['*/*', false],
    ['text/html', false],
    ['text/event-stream', true],
    ['text/event-stream;q=0', false],
    ['text/event-stream, application/json', false],
    ['text/event-stream, application/json;q=0.9', true],
    ['text/event-stream;q=0.8, */*;q=0.9', false]
  ]
  for (const [accept, isStream] of fields) {
    const { headers } = await store.request('HEAD', '/events', { headers: accept === undefined ? {} : { accept } })
    t.equal(headers['content-type']?.startsWith('text/event-stream'), isStream, String(accept))
    t.equal(headers.vary, 'Accept')
  }
})

t.test('an account has at most STREAMS_PER_ACCOUNT streams open', async (t) => {
  const service = await startApp(t, { STREAMS_PER_ACCOUNT: '2' })
  const [ada, ben] = [await service.openAccount(), await service.openAccount()]
  const streams = [await openStream(service, ada), await openStream(service, ada)]
  const { status, body } = await ada.get('/events', { accept: 'text/event-stream' })
  const limit = { code: 'stream_limit_reached', message: /streams of your account is 2/ }
  t.match({ status, body }, { status: 409, body: limit })
  t.equal((await ada.get('/events')).status, 200, 'lists are not streams')
  const other = await openStream(service, ben)
  t.equal(other.status, 200, 'other accounts are not affected')
  other.close()
  streams[0]!.close()
  await eventually(async () => {
    const stream = await openStream(service, ada)
    stream.close()
    return stream.status === 200
  })
  streams[1]!.close()
})

t.test('every change writes an event with whole records as they are after it', async (t) => {
  const { openAccount } = await startApp(t)
  const store = await openAccount()
  const { body: category } = await store.post('/categories', { name: 'Dogs' })
  const { body: renamed } = await store.patch(`/categories/${category.id}`, { description: 'Loyal' })
  const { body: pet } = await store.post('/pets', { name: 'Rex', categoryId: category.id })
  const { body: counted } = await store.patch(`/inventory/${pet.id}`, { quantity: 3 })
  const { body: order } = await store.post('/store/orders', { petId: pet.id, quantity: 3 })
  const soldOut = { petId: pet.id, quantity: 0, status: 'pending' }
  const { body: dated } = await store.patch(`/store/orders/${order.id}`, { shipDate: '2026-12-24T12:00:00Z' })
  await store.delete(`/store/orders/${order.id}`)
  const { body: bought } = await store.post('/store/orders', { petId: pet.id, complete: true })
  const { body: message } = await store.post('/messages', { message: 'Hello' })
  const { body: events } = await store.get('/events')
  const restored = { petId: pet.id, quantity: 3, status: 'available' }
  const left = { petId: pet.id, quantity: 2, status: 'available' }
  t.same(events.map(({ id, type, data }: StreamedEvent) => ({ id, type, data })), [
    { id: 1, type: 'category.created', data: { category } },
    { id: 2, type: 'category.updated', data: { category: renamed } },
    { id: 3, type: 'pet.created', data: { pet } },
    { id: 4, type: 'inventory.counted', data: { inventory: counted, previousQuantity: 0 } },
    { id: 5, type: 'order.placed', data: { order, inventory: soldOut } },
    { id: 6, type: 'pet.updated', data: { pet: { ...pet, status: 'pending' }, inventory: soldOut } },
    { id: 7, type: 'order.updated', data: { order: dated, inventory: soldOut } },
    { id: 8, type: 'order.cancelled', data: { order: dated, inventory: restored } },
    { id: 9, type: 'pet.updated', data: { pet, inventory: restored } },
    { id: 10, type: 'order.placed', data: { order: bought, inventory: left } },
    { id: 11, type: 'order.completed', data: { order: bought, inventory: left } },
    { id: 12, type: 'message.created', data: { message } }
  ])
})

t.test('requests that change nothing, fail or are replayed write no event', async (t) => {
  const { openAccount } = await startApp(t)
  const store = await openAccount()
  const { body: category } = await store.post('/categories', { name: 'Dogs' })
  await store.patch(`/categories/${category.id}`, { name: 'Dogs' })
  await store.post('/pets', { name: 'Rex', categoryId: 4711 })
  await store.post('/account/keys', {})
  for (let i = 0; i < 2; i++) await store.post('/messages', { message: 'Hello' }, { 'idempotency-key': 'once' })
  t.equal((await store.get('/events')).headers['event-id'], '2')
})

t.test('the list has links to its pages, and Event-Id is the newest event', async (t) => {
  const { openAccount } = await startApp(t)
  const store = await openAccount()
  t.same((await store.get('/events')).body, [])
  t.equal((await store.get('/events')).headers['event-id'], '0')
  for (let i = 0; i < 5; i++) await store.post('/messages', { message: `${i}` })
  const seen: number[] = []
  let path: string | undefined = '/events?limit=2'
  while (path !== undefined) {
    const { body, headers } = await store.get(path)
    seen.push(...body.map(({ id }: StreamedEvent) => id))
    t.equal(headers['event-id'], '5')
    path = /<([^>]*)>; rel="next"/.exec(String(headers.link))?.[1]
  }
  t.same(seen, [1, 2, 3, 4, 5])
  t.same((await store.get('/events?after=3')).body.map(({ id }: StreamedEvent) => id), [4, 5])
  t.same((await store.get('/events?after=9007199254740993')).body, [])
  const { headers: { etag } } = await store.get('/events')
  t.equal((await store.get('/events', { 'if-none-match': String(etag) })).status, 304)
})

t.test('a stream sends stored events, then new ones, and resumes without a loss', async (t) => {
  const service = await startApp(t)
  const store = await service.openAccount()
  await store.post('/messages', { message: '1' })
  const first = await openStream(service, store)
  t.equal(first.status, 200)
  t.equal(first.headers['content-type'], 'text/event-stream; charset=utf-8')
  t.equal(first.headers['event-id'], '1')
  await first.until(1)
  await store.post('/messages', { message: 'two\nlines' })
  await first.until(2)
  first.close()
  await store.post('/messages', { message: '3' })
  const second = await openStream(service, store, { headers: { 'last-event-id': '2' } })
  await store.post('/messages', { message: '4' })
  await second.until(2)
  t.same([...first.events, ...second.events].map(({ id }) => id), [1, 2, 3, 4])
  t.same([...first.events, ...second.events].map(({ data }) => data.message.message), ['1', 'two\nlines', '3', '4'])
  const third = await openStream(service, store, { path: '/events?after=3' })
  await third.until(1)
  t.same(third.events.map(({ id }) => id), [4])
  second.close()
  third.close()
})

t.test('many followers receive the same events once each, also from other processes', async (t) => {
  const here = await startApp(t)
  const there = await startApp(t, { DATABASE_URL: here.config.DATABASE_URL })
  const store = await here.openAccount()
  const streams = await Promise.all([here, there, here, there].map(async (service) => await openStream(service, store)))
  const elsewhere = there.withKey(store.key!)
  await Promise.all(Array.from({ length: 20 }, async (_, i) => {
    await (i % 2 === 0 ? store : elsewhere).post('/messages', { message: `${i}` })
  }))
  await Promise.all(streams.map(async (stream) => { await stream.until(20) }))
  for (const stream of streams) {
    t.same(stream.events.map(({ id }) => id), Array.from({ length: 20 }, (_, i) => i + 1))
    stream.close()
  }
})

t.test('followers in another process are notified of each commit', {
  skip: database === 'sqlite' && 'SQLite has no notifications: the process polls every 5 s'
}, async (t) => {
  const here = await startApp(t)
  const there = await startApp(t, { DATABASE_URL: here.config.DATABASE_URL })
  const store = await here.openAccount()
  const stream = await openStream(there, store)
  const notified = new Set<number>()
  there.app.onChange(({ events = [] }) => { for (const account of events) notified.add(account) })
  let sent = 0
  // The process may still connect when the first message is sent.
  await eventually(async () => {
    await store.post('/messages', { message: `${++sent}` })
    return notified.has(store.account!)
  })
  await stream.until(sent)
  t.equal(stream.events.length, sent)
  stream.close()
})

t.test('a stream begins with a comment, before there is any event', async (t) => {
  const service = await startApp(t)
  const stream = await openStream(service, await service.openAccount())
  await eventually(() => stream.comments.length === 1)
  t.equal(stream.events.length, 0)
  stream.close()
})

t.test('a stream ends when its key is revoked or expires, and when the service stops', async (t) => {
  const service = await startApp(t)
  const store = await service.openAccount()
  const { body: other } = await store.post('/account/keys', {})
  const { body: brief } = await store.post('/account/keys', { expiresAt: new Date(Date.now() + 2_000).toISOString() })
  const revoked = await openStream(service, { key: other.apiKey })
  const expiring = await openStream(service, { key: brief.apiKey })
  const staying = await openStream(service, store)
  await store.delete(`/account/keys/${other.id}`)
  await revoked.ended
  await expiring.ended
  t.same([revoked, expiring].map(({ events }) => events), [[], []])
  await store.post('/messages', { message: 'still here' })
  await staying.until(1)
  await service.app.close()
  await staying.ended
})

t.test('a client that does not read is disconnected before its backlog grows the memory', async (t) => {
  const service = await startApp(t)
  const store = await service.openAccount()
  const connections: Socket[] = []
  service.app.server.on('connection', (socket: Socket) => { connections.push(socket) })
  const stream = await openStream(service, store)
  const connection = connections.at(-1)!
  stream.pause()
  const text = '漢'.repeat(10_000)
  // The kernel's buffers take some megabytes. Beyond them, the service keeps one megabyte and no more.
  for (let i = 0; i < 100; i++) {
    await Promise.all(Array.from({ length: 10 }, async () => await store.post('/messages', { message: text })))
  }
  await eventually(() => connection.destroyed)
  stream.resume()
  await stream.ended
  t.ok(stream.events.length < 1_000, `disconnected after ${stream.events.length} events`)
})

t.test('a position before deleted events is answered 410 with the oldest stored event', async (t) => {
  const { app, openAccount } = await startApp(t)
  const store = await openAccount()
  for (let i = 0; i < 5; i++) await store.post('/messages', { message: `${i}` })
  await app.database.prisma.event.deleteMany({ where: { id: { lte: 3 } } })
  const { status, body, headers } = await store.get('/events?after=1')
  t.equal(status, 410)
  t.equal(body.code, 'events_expired')
  t.match(body.message, 'the oldest stored event is 4')
  t.equal(headers['event-id'], '5')
  t.same((await store.get('/events')).body.map(({ id }: StreamedEvent) => id), [4, 5])
  t.same((await store.get('/events?after=3')).body.map(({ id }: StreamedEvent) => id), [4, 5])
  t.equal((await store.get('/events', { accept: 'text/event-stream', 'last-event-id': '0' })).status, 410)
})

t.test('replaying all events rebuilds the store after concurrent writes from several processes', async (t) => {
  const services = [await startApp(t, DELIVERING)]
  for (let i = 0; i < 2; i++) services.push(await startApp(t, { DATABASE_URL: services[0]!.config.DATABASE_URL }))
  const store = await services[0]!.openAccount()
  // Some messages stay in processing.
  const receiver = await openReceiver(t, (response, _received, nth) => {
    response.writeHead(nth % 2 === 0 ? 500 : 204).end()
  })
  await store.post('/webhooks', { url: receiver.url, events: ['message.created'] })
  const clients = services.map(({ withKey }) => withKey(store.key!))
  const { body: category } = await store.post('/categories', { name: 'Dogs' })
  const pets: number[] = []
  for (let i = 0; i < 5; i++) pets.push((await store.post('/pets', { name: `${i}`, categoryId: category.id })).body.id)

  const pick = <T>(items: T[]): T => items[Math.floor(Math.random() * items.length)]!
  const randomOrder = (petId: number): object =>
    ({ petId, quantity: 1 + Math.floor(Math.random() * 3), complete: Math.random() < 0.3 })
  async function write (client: Client): Promise<void> {
    const pet = pick(pets)
    const { body } = await client.get(`/store/orders?petId=${pet}&complete=false`)
    const orders = body.map(({ id }: { id: number }) => id)
    const action = Math.random()
    if (action < 0.3) await client.patch(`/inventory/${pet}`, { quantity: Math.floor(Math.random() * 6) })
    else if (action < 0.6) await client.post('/store/orders', randomOrder(pet))
    else if (action < 0.7 && orders.length > 0) await client.delete(`/store/orders/${pick(orders)}`)
    else if (action < 0.8 && orders.length > 0) await client.patch(`/store/orders/${pick(orders)}`, { complete: true })
    else if (action < 0.9) await client.patch(`/pets/${pet}`, { status: pick(['available', 'pending', 'sold']) })
    else if (action < 0.95) await client.post('/messages', { message: 'Hello' })
    else {
      const { body } = await client.post('/pets', { name: 'brief', categoryId: category.id })
      if (Math.random() < 0.5) await client.delete(`/pets/${body.id}`)
    }
  }
  const writers = clients.flatMap((client) => Array.from({ length: 4 }, async () => {
    for (let i = 0; i < 12; i++) await write(client)
  }))

  // A mirror that starts in between reads Event-Id, walks the lists, then applies the events after Event-Id.
  await Promise.race(writers)
  const start = Number((await store.get('/events?limit=1')).headers['event-id'])
  const early = await walkStore(store.get)
  await Promise.all(writers)

  for (let i = 0; i < 4; i++) await store.post('/messages', { message: 'Hello' })
  await eventually(async () =>
    (await walkStore(store.get)).messages.every((message) => (message as { status: string }).status !== 'queued'))
  const { lists: truth, last } = await walkStillStore(store.get)
  const events = (await walkEvents(store.get, 0)).slice(0, last)
  t.same(events.map(({ id }) => id), events.map((_, i) => i + 1), 'no gap and no duplicate')
  t.ok(events.some(({ type }) => type === 'message.processing'))
  t.same(listed(mirror(events)), truth)
  t.same(listed(mirror(events.filter(({ id }) => id > start), copied(early))), truth)
})
