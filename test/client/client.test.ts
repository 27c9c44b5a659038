// Only on SQLite: calls the service over HTTP; no statement decides what a client does.

import { once, EventEmitter } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { ConnectionError, createClient, PetstoreError, type Client, type Pet } from '../../src/client/client.ts'
import { createRateLimit } from '../../src/client/rate-limit.ts'
import { operations } from '../../src/generated/client/operations.ts'
import { startApp } from '../support/app.ts'
import { setClockBack } from '../support/machine-clock.ts'
import { freePort } from '../support/port.ts'
import { eventually } from '../support/receiver.ts'
import { answerWith, holdAnswer, loseAnswer, openProxy, truncateAnswer, type Fault } from './unreliable-proxy.ts'

/** Opens a store and returns its client. */
async function openStore (url: string, options: object = {}): Promise<Client> {
  const { apiKey } = await createClient({ url }).createAccount({ name: 'A store' })
  return createClient({ url, apiKey, ...options })
}

async function stockedPet (store: Client, quantity: number): Promise<Pet> {
  const category = await store.createCategory({ name: 'Dogs' })
  const pet = await store.createPet({ name: 'Rex', categoryId: category.id })
  await store.updateInventory(pet.id, { quantity })
  return pet
}

/** Returns an error answer of the service that asks for a pause. */
function busy (status: number, code: string, seconds: number): Fault {
  return answerWith(status, JSON.stringify({ code, message: 'Later', status }), { 'retry-after': String(seconds) })
}

/** Returns the error of an operation that must fail. */
async function failureOf (promise: Promise<unknown>): Promise<PetstoreError | ConnectionError> {
  const error = await promise.then(() => undefined, (error: unknown) => error)
  if (error instanceof PetstoreError || error instanceof ConnectionError) return error
  throw new Error(`no error of the client: ${String(error)}`)
}

t.test('the client has a method for each operation of the document', async (t) => {
  const { app } = await startApp(t, { LAB: 'true' })
  const paths = app.swagger().paths as Record<string, Record<string, { operationId: string }>>
  const ids = Object.values(paths).flatMap((methods) => Object.values(methods)).map(({ operationId }) => operationId)
  t.ok(ids.length > 30)
  t.strictSame(Object.keys(operations).sort(), ids.sort(), 'run `npm run build`')
  const client = createClient({ url: 'http://127.0.0.1:1' }) as Record<string, unknown>
  for (const id of ids) t.type(client[id], 'function', id)
})

t.test('a store: records, conditions and errors', async (t) => {
  const { port } = await startApp(t)
  const store = await openStore(`http://127.0.0.1:${port}/`)

  await t.test('methods take the id, then the body or the query', async (t) => {
    const pet = await stockedPet(store, 3)
    t.strictSame(await store.updatePet(pet.id, { name: 'Max' }), { ...pet, name: 'Max' })
    t.strictSame(await store.listPets({ id: [pet.id, 999], status: 'available' }), [{ ...pet, name: 'Max' }])
    const order = await store.placeOrder({ petId: pet.id, quantity: 2 })
    t.match(order, { petId: pet.id, quantity: 2, complete: false })
    t.match(await store.getInventoryItem(pet.id), { quantity: 1 })
    t.equal(await store.cancelOrder(order.id!), undefined)
    t.match(await store.getInventoryItem(pet.id), { quantity: 3 })
  })

  await t.test('an error has the code and the status of the answer', async (t) => {
    const pet = await stockedPet(store, 1)
    const error = await failureOf(store.placeOrder({ petId: pet.id, quantity: 2 }))
    t.match(error, { name: 'PetstoreError', code: 'insufficient_stock', status: 409, message: /stock/ })
    t.match((error as PetstoreError).requestId, /./)
    t.match(await failureOf(store.getOrder(999)), { code: 'order_not_found', status: 404 })
    t.match(await failureOf(createClient({ url: `http://127.0.0.1:${port}` }).getAccount()), { code: 'unauthorized' })
  })

  await t.test('withResponse returns the header fields, which conditions need', async (t) => {
    const pet = await stockedPet(store, 1)
    const { data, response } = await store.getPet(pet.id).withResponse()
    t.strictSame(data, pet)
    const etag = response.headers.get('etag')!
    t.equal(await store.getPet(pet.id, { headers: { 'If-None-Match': etag } }), undefined)
    await store.updatePet(pet.id, { name: 'Max' }, { headers: { 'If-Match': etag } })
    const late = await failureOf(store.updatePet(pet.id, { name: 'Rex' }, { headers: { 'If-Match': etag } }))
    t.match(late, { code: 'precondition_failed', status: 412 })
  })

  await t.test('a failed call rejects once, however it is awaited', async (t) => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): void => { unhandled.push(reason) }
    process.on('unhandledRejection', note)
    t.teardown(() => process.off('unhandledRejection', note))
    t.match(await failureOf(store.getOrder(999).withResponse()), { code: 'order_not_found' })
    t.match(await failureOf(store.listPets({ limit: 0 })[Symbol.asyncIterator]().next()), { status: 400 })
    await new Promise((resolve) => setTimeout(resolve, 10))
    t.strictSame(unhandled, [])
  })

  await t.test('an id that is missing is no request', async (t) => {
    await t.rejects((store.getPet as unknown as () => Promise<unknown>)(), /getPet needs the petId/)
    t.throws(() => createClient({ url: '/api' }), /must be an absolute/)
  })
})

t.test('a list is iterated over all its pages', async (t) => {
  const { port } = await startApp(t, { BASE_PATH: '/v1', PUBLIC_URL: 'https://pets.example' })
  const proxy = await openProxy(t, port)
  const store = await openStore(`${proxy.url}/v1`)
  for (let i = 0; i < 7; i++) await store.createCategory({ name: `Category ${i}` })
  const before = proxy.requests.length
  const names: string[] = []
  for await (const { name } of store.listCategories({ limit: 3, sort: '-id' })) names.push(name)
  t.strictSame(names, [6, 5, 4, 3, 2, 1, 0].map((i) => `Category ${i}`))
  t.equal(proxy.requests.length - before, 3)
  t.equal((await store.listCategories({ limit: 3 })).length, 3, 'a page when it is awaited')

  const some: string[] = []
  for await (const { name } of store.listCategories({ limit: 3 })) {
    some.push(name)
    if (some.length === 2) break
  }
  t.equal(proxy.requests.length - before, 5, 'a loop that ends reads no further page')

  await t.test('those that follow are not asked for by the header fields of the first', async (t) => {
    const events = store.listEvents({ limit: 3 }, { headers: { 'Last-Event-ID': '2' } })
    const ids: number[] = []
    for await (const { id } of events) {
      ids.push(id)
      if (ids.length > 5) break
    }
    t.strictSame(ids, [3, 4, 5, 6, 7])
    const etag = (await store.listCategories({ limit: 3 }).withResponse()).response.headers.get('etag')!
    const found: string[] = []
    for await (const { name } of store.listCategories({ limit: 3 }, { headers: { 'If-Match': etag } })) found.push(name)
    t.equal(found.length, 7)
  })
})

t.test('a request that fails on its way is sent again', async (t) => {
  const { port } = await startApp(t)
  const proxy = await openProxy(t, port, ({ method, url }) => method === 'POST' && url !== '/accounts')
  const store = await openStore(proxy.url, { timeoutMs: 20_000 })
  const sent = (path: string) => proxy.requests.filter((request) => request.path === path && request.method === 'POST')
  const keys = (path: string) => sent(path).map(({ headers }) => headers['idempotency-key'])
  const category = await store.createCategory({ name: 'Dogs' })

  await t.test('with the same Idempotency-Key, so that it has one effect', async (t) => {
    const pet = await store.createPet({ name: 'Rex', categoryId: category.id })
    await store.updateInventory(pet.id, { quantity: 5 })
    proxy.faults = [loseAnswer, truncateAnswer, answerWith(502, '<h1>Bad gateway</h1>'), answerWith(200, '<html>')]
    const { data, response } = await store.placeOrder({ petId: pet.id }).withResponse()
    t.equal(response.headers.get('idempotency-replayed'), 'true')
    t.strictSame(await store.listOrders(), [data])
    t.match(await store.getInventoryItem(pet.id), { quantity: 4 })
    t.equal(sent('/store/orders').length, 5)
    t.equal(new Set(keys('/store/orders')).size, 1)
    await store.placeOrder({ petId: pet.id }, { headers: { 'idempotency-key': 'my-own' } })
    t.equal(keys('/store/orders').at(-1), 'my-own')
    t.not(keys('/pets')[0], keys('/store/orders')[0], 'each call has a key of its own')
  })

  await t.test('but not without a key: createWebhook takes none', async (t) => {
    proxy.faults = [loseAnswer]
    const error = await failureOf(store.createWebhook({ url: 'https://example.com/' }))
    t.equal(error.name, 'ConnectionError')
    t.strictSame(keys('/webhooks'), [undefined])
    t.equal((await store.listWebhooks()).length, 1, 'it had its effect')
    proxy.faults = [busy(429, 'rate_limited', 0)]
    t.ok(await store.createWebhook({ url: 'https://example.com/' }), 'the rate limit refused it before any effect')
  })

  await t.test('after the pause that the service asks for', async (t) => {
    proxy.faults = [busy(503, 'overloaded', 1)]
    await store.createPet({ name: 'Max', categoryId: category.id })
    const [first, second] = sent('/pets').slice(-2)
    // A timer can fire a millisecond early.
    t.ok(second!.at - first!.at >= 990, `${second!.at - first!.at} ms`)
    proxy.faults = [busy(503, 'overloaded', 3600)]
    t.match(await failureOf(store.createPet({ name: 'Max', categoryId: category.id })), { retryAfterMs: 3_600_000 })
  })

  await t.test('and when an answer takes too long', async (t) => {
    proxy.faults = [holdAnswer]
    const { response } = await store.createPet({ name: 'Luna', categoryId: category.id }, { timeoutMs: 1_000 })
      .withResponse()
    t.equal(response.headers.get('idempotency-replayed'), 'true')
    proxy.faults = [holdAnswer]
    const late = await failureOf(
      store.createPet({ name: 'Luna', categoryId: category.id }, { timeoutMs: 500, retries: 0 }))
    t.match(late, { name: 'ConnectionError', message: 'No response within 500 ms' })
  })

  await t.test('as often as `retries` says', async (t) => {
    const before = sent('/messages').length
    proxy.faults = [loseAnswer, loseAnswer, loseAnswer]
    t.match(await failureOf(store.createMessage({ message: 'Hello' }, { retries: 1 })), { name: 'ConnectionError' })
    t.equal(sent('/messages').length - before, 2)
    proxy.faults = []
  })

  await t.test('but not after an error that stays', async (t) => {
    const before = sent('/pets').length
    t.match(await failureOf(store.createPet({ name: '', categoryId: category.id })), { code: 'validation_failed' })
    t.equal(sent('/pets').length - before, 1)
  })

  await t.test('until its signal is aborted', async (t) => {
    proxy.faults = [holdAnswer]
    const before = sent('/messages').length
    const stop = new AbortController()
    const call = store.createMessage({ message: 'Hello' }, { signal: stop.signal })
    // The proxy must have it: a request that arrives later would have the next fault.
    void eventually(() => sent('/messages').length > before).then(() => { stop.abort(new Error('enough')) })
    await t.rejects(call, { message: 'enough' })
    proxy.faults = [busy(503, 'overloaded', 9)]
    const pausing = store.createMessage({ message: 'Hello' }, { signal: AbortSignal.timeout(300) })
    await t.rejects(pausing, { name: 'TimeoutError' })
  })
})

t.test('a PUT is sent again without a key, because its effect is the same', async (t) => {
  const { port } = await startApp(t)
  const proxy = await openProxy(t, port, ({ method }) => method === 'PUT')
  const store = await openStore(proxy.url, { timeoutMs: 20_000 })
  proxy.faults = [loseAnswer, answerWith(502, '<h1>Bad gateway</h1>')]
  const limits = { requests: 1_000, windowSeconds: 60 }
  t.match(await store.putLimits(limits), limits)
  t.match(await store.getLimits(), limits)
  const sent = proxy.requests.filter(({ method }) => method === 'PUT')
  t.strictSame(sent.map(({ headers }) => headers['idempotency-key']), [undefined, undefined, undefined])
})

t.test('a request waits while the service would refuse it', async (t) => {
  const { port } = await startApp(t)
  const proxy = await openProxy(t, port, ({ url = '' }) => /^.(pets|messages|events)/.test(url))
  const responses = new EventEmitter()
  const store = await openStore(proxy.url, {
    async fetch (url: string, init: RequestInit) {
      const response = await fetch(url, init)
      responses.emit(String(response.status))
      return response
    }
  })
  const spent = (seconds: number): Fault => answerWith(200, '[]', { ratelimit: `"a";r=9;t=0, "b"; r=0; t=${seconds}` })
  /** The time between the last two requests. A timer can fire a millisecond early. */
  const pauseMs = (): number => proxy.requests.at(-1)!.at - proxy.requests.at(-2)!.at + 10

  await t.test('because none is left of the limit', async (t) => {
    proxy.faults = [spent(1)]
    await store.listPets()
    await store.listMessages()
    t.ok(pauseMs() >= 1_000)
  })

  await t.test('because another one was refused', async (t) => {
    proxy.faults = [busy(429, 'rate_limited', 1)]
    const told = once(responses, '429')
    const refused = store.listPets()
    await told
    await setImmediate()
    const count = proxy.requests.length
    await Promise.all([refused, store.listMessages()])
    t.strictSame(proxy.requests.slice(count - 1).map(({ path }) => path).sort(), ['/messages', '/pets', '/pets'])
    const [first, ...others] = proxy.requests.slice(count - 1)
    for (const { at } of others) t.ok(at - first!.at + 10 >= 1_000)
  })

  await t.test('and so does a feed', async (t) => {
    proxy.faults = [spent(1)]
    await store.createCategory({ name: 'Dogs' })
    await store.listPets()
    await store.followEvents().next()
    t.ok(pauseMs() >= 1_000)
    proxy.faults = [busy(429, 'rate_limited', 1)]
    const told = once(responses, '429')
    const stop = new AbortController()
    const feed = store.followEvents({ signal: stop.signal }).next()
    await told
    await setImmediate()
    const count = proxy.requests.length
    await Promise.all([feed, store.listMessages()])
    stop.abort()
    const [refused, ...others] = proxy.requests.slice(count - 1)
    t.equal(others.length, 2)
    for (const { at } of others) t.ok(at - refused!.at + 10 >= 1_000)
  })

  await t.test('but not for long, without retries, in the lab, or after a change of the limits', async (t) => {
    // The signal ends a request that waits for a minute.
    const options = { signal: AbortSignal.timeout(50_000) }
    proxy.faults = [spent(61)]
    await store.listPets()
    await store.listPets({}, options)
    proxy.faults = [spent(60)]
    await store.listPets()
    await store.listPets({}, { ...options, retries: 0 })
    await store.advanceClock({ seconds: 60 }, options)
    t.ok(await store.listPets({}, options))
  })
})

t.test('a client waits no longer for a limit when the clock of the machine is set back', async (t) => {
  const limit = createRateLimit()
  limit.note(operations.listPets, new Response('{}', { status: 429, headers: { 'retry-after': '30' } }))
  setClockBack(t)
  t.ok(limit.waitMs(operations.listPets) <= 30_000)
})

t.test('without a service, the error says why', async (t) => {
  const store = createClient({ url: `http://127.0.0.1:${await freePort()}`, retries: 0 })
  t.match(await failureOf(store.listPets()), { name: 'ConnectionError', message: /ECONNREFUSED/ })
})
