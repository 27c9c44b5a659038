// Only on SQLite: counts requests, batches and deliveries in memory.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { buildApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { startApp, type Client, type TestApp } from '../support/app.ts'
import { holdWrites, inOneGroup } from '../support/groups.ts'
import { eventually, openReceiver } from '../support/receiver.ts'
import { freePort } from '../support/port.ts'
import { openStream } from '../support/stream.ts'

/** The value of every metric, by its name and labels. */
type Figures = Map<string, number>

interface Measured extends TestApp {
  ada: Client
  figures: () => Promise<Figures>
  address: string
}

async function measured (t: Test, settings: Record<string, string> = {}): Promise<Measured> {
  const METRICS_PORT = String(await freePort())
  const app = await startApp(t, { METRICS_PORT, ...settings })
  const address = `http://127.0.0.1:${METRICS_PORT}/metrics`
  return {
    ...app,
    ada: await app.openAccount(),
    figures: async () => parse(await (await fetch(address)).text()),
    address
  }
}

function parse (text: string): Figures {
  return new Map(text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).map((line) => {
    const [, name, value] = /^(.+) (\S+)$/.exec(line)!
    return [name!, Number(value)]
  }))
}

t.test('requests are counted by operation and status, and their time by operation', async (t) => {
  const { ada, nobody, figures } = await measured(t)
  await ada.post('/categories', { name: 'Dogs' })
  await ada.post('/categories', {})
  await ada.get('/pets')
  await ada.request('HEAD', '/pets')
  await nobody.get('/pets')
  await nobody.get('/livez')
  const found = await figures()
  t.equal(found.get('http_requests_total{operation="createCategory",status="201"}'), 1)
  t.equal(found.get('http_requests_total{operation="createCategory",status="400"}'), 1)
  t.equal(found.get('http_requests_total{operation="listPets",status="200"}'), 2, 'HEAD is the same operation')
  t.equal(found.get('http_requests_total{operation="listPets",status="401"}'), 1)
  t.equal(found.get('http_requests_total{operation="/livez",status="200"}'), 1)
  t.equal(found.get('http_request_duration_seconds_count{operation="createCategory"}'), 2)
  t.equal(found.get('http_request_duration_seconds_bucket{le="10",operation="createCategory"}'), 2, 'in seconds')
  t.ok(found.get('http_request_duration_seconds_sum{operation="createCategory"}')! < 20)
})

t.test('a request whose connection closes before its response is complete is counted', async (t) => {
  const { ada, port, figures } = await measured(t, { LAB: 'true' })
  await ada.post('/lab/faults', { operation: 'listPets', effect: { type: 'lose_answer' } })
  await t.rejects(ada.get('/pets'))
  const stream = await openStream({ port }, ada)
  stream.close()
  await eventually(async () => {
    const found = await figures()
    return found.get('http_requests_total{operation="listPets",status="none"}') === 1 &&
      found.get('http_request_duration_seconds_count{operation="listPets"}') === 1 &&
      found.get('http_requests_total{operation="listEvents",status="200"}') === 1
  })
})

t.test('unknown paths share one operation name', async (t) => {
  const { nobody, figures } = await measured(t)
  for (const path of ['/a', '/b', '/pets/%zz', '/c/d']) await nobody.get(path)
  await nobody.request('PUT', '/pets')
  await nobody.request('OPTIONS', '/pets')
  const names = [...(await figures()).keys()].filter((name) => name.startsWith('http_requests_total'))
  const operations = new Set(names.map((name) => /operation="([^"]*)"/.exec(name)![1]))
  t.same([...operations].sort(), ['createAccount', 'none'])
})

t.test('errors are counted by code, including errors before a request is parsed', async (t) => {
  const { ada, nobody, figures, port } = await measured(t, { RATE_LIMIT_SIGNUP: '1' })
  await ada.get('/pets/77')
  await ada.get('/pets?limit=x')
  await nobody.post('/accounts', { name: 'One too many' })
  await nobody.get('/pets/%zz')
  const socket = connect(port, '127.0.0.1')
  socket.end('no HTTP\r\n\r\n')
  socket.resume()
  await once(socket, 'close')
  const found = await figures()
  for (const [code, count] of [
    ['pet_not_found', 1],
    ['validation_failed', 1],
    ['rate_limited', 1],
    ['bad_request', 2]
  ] as const) {
    t.equal(found.get(`petstore_errors_total{code="${code}"}`), count, code)
  }
})

t.test('requests to deprecated operations are counted', async (t) => {
  const { ada, figures } = await measured(t)
  await ada.get('/pets/77')
  await ada.delete('/pets/77')
  t.same(
    [...(await figures())].filter(([name]) => name.startsWith('petstore_deprecated')),
    [['petstore_deprecated_requests_total{operation="getPet"}', 1]]
  )
})

t.test('batches report their sizes and waits, and queues report their depths', async (t) => {
  const { app, ada, figures } = await measured(t)
  const before = await idle(figures)
  await inOneGroup(app, Array.from({ length: 20 }, () => async () => await ada.post('/categories', { name: 'Dogs' })))
  await Promise.all(Array.from({ length: 20 }, async () => await ada.get('/categories')))
  const after = await idle(figures)
  const grown = (name: string): number => after.get(name)! - (before.get(name) ?? 0)
  for (const queue of QUEUES) {
    const batches = grown(`petstore_batch_size_count{queue="${queue}"}`)
    const size = grown(`petstore_batch_size_sum{queue="${queue}"}`)
    t.ok(size >= 20, `all of the requests that ${queue}`)
    t.ok(batches >= 1 && batches <= size, `${batches} batches`)
    if (queue === 'commit') t.ok(size - batches >= 19, `${batches} batches of ${size} writes, of which 20 share one`)
    t.equal(grown(`petstore_batch_duration_seconds_count{queue="${queue}"}`), batches)
    t.ok(grown(`petstore_batch_duration_seconds_sum{queue="${queue}"}`) < 20, 'in seconds')
  }
})

const QUEUES = ['read', 'commit'] as const

/** Returns figures that no batch in flight is missing from: the service also reads and writes by itself. */
async function idle (figures: Measured['figures']): Promise<Figures> {
  let found: Figures = new Map()
  await eventually(async () => {
    found = await figures()
    return QUEUES.every((queue) =>
      found.get(`petstore_queue_depth{queue="${queue}"}`) === 0 &&
      found.get(`petstore_batch_wait_seconds_count{queue="${queue}"}`) ===
        found.get(`petstore_batch_size_count{queue="${queue}"}`))
  })
  return found
}

t.test('waiting requests count as the depth of their queue', async (t) => {
  const { app, ada, figures } = await measured(t)
  await ada.get('/pets')
  const release = await holdWrites(app)
  const write = ada.post('/categories', { name: 'Dogs' })
  await eventually(async () => (await figures()).get('petstore_queue_depth{queue="commit"}') === 1)
  release()
  t.equal((await write).status, 201)
  await eventually(async () => (await figures()).get('petstore_queue_depth{queue="commit"}') === 0)
})

t.test('deliveries are counted by outcome', async (t) => {
  const { ada, figures } = await measured(t, { DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true' })
  const { url } = await openReceiver(t, (response, _received, nth) => {
    response.writeHead(nth === 1 ? 204 : 500).end()
  })
  await ada.post('/webhooks', { url, events: ['category.created'] })
  await ada.post('/categories', { name: 'Dogs' })
  const count = async (outcome: string): Promise<number | undefined> =>
    (await figures()).get(`petstore_deliveries_total{outcome="${outcome}"}`)
  await eventually(async () => await count('accepted') === 1)
  await ada.post('/categories', { name: 'Cats' })
  await eventually(async () => await count('retried') === 1)
  const found = await figures()
  t.equal(found.get('petstore_delivery_duration_seconds_count'), 2)
  t.equal(found.get('petstore_deliveries_total{outcome="given_up"}'), 0)
})

t.test('a stream counts as a request after its end, and its duration is not recorded', async (t) => {
  const { ada, figures, port } = await measured(t)
  const { body: { id, apiKey } } = await ada.post('/account/keys', {})
  const stream = await fetch(`http://127.0.0.1:${port}/events`, {
    headers: { authorization: `Bearer ${apiKey}`, accept: 'text/event-stream' }
  })
  t.equal(stream.status, 200)
  // A stream ends when its key is revoked.
  await ada.delete(`/account/keys/${id}`)
  await stream.text()
  let found: Figures = new Map()
  await eventually(async () => {
    found = await figures()
    return found.get('http_requests_total{operation="listEvents",status="200"}') === 1
  })
  t.equal(found.get('http_request_duration_seconds_count{operation="listEvents"}'), undefined)
})

t.test('the process reports its own metrics, including the event loop', async (t) => {
  const { address } = await measured(t)
  const answer = await fetch(address)
  t.match(answer.headers.get('content-type'), /^text\/plain; version=0\.0\.4/)
  const text = await answer.text()
  for (const name of [
    'nodejs_eventloop_lag_p99_seconds',
    'process_cpu_seconds_total',
    'process_resident_memory_bytes'
  ]) { t.match(text, new RegExp(`^${name} `, 'm')) }
  for (const line of text.split('\n').filter((line) => line.startsWith('# HELP'))) t.match(line, /^# HELP \w+ \S/)
  t.equal((await fetch(new URL('/pets', address))).status, 404, 'and nothing else is served there')
})

t.test('the pages about metrics name the metrics that exist, and all of them', async (t) => {
  // Without the metrics of the Node process, which differ by platform: test/docs/reference.test.ts compares those.
  const page = ['reference/metrics.md', 'how-to/operate.md']
    .map(
      (name) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8').split('## The Node process')[0]!
    )
    .join('\n')
  const { address } = await measured(t)
  const text = await (await fetch(address)).text()
  const there = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!))
  const told = [...page.matchAll(/\b(?:http|petstore|nodejs|process)_[a-z0-9_]+/g)].map(([name]) => name)
  t.strictSame(told.filter((name) => !there.has(name) && !there.has(name.replace(/_(bucket|sum|count)$/, ''))), [])
  t.strictSame([...there].filter((name) => /^(http|petstore)_/.test(name) && !told.includes(name)), [])
})

t.test('metrics are neither on the port of the service nor in its document, and stop with it', async (t) => {
  const { nobody, app, address } = await measured(t)
  t.match(await nobody.get('/metrics'), { status: 404, body: { code: 'route_not_found' } })
  t.notMatch(JSON.stringify(app.swagger()), /metrics/i)
  await app.close()
  await t.rejects(fetch(address))
})

t.test('a port in use stops the start with an explanation', async (t) => {
  const { config } = await measured(t)
  const other = await buildApp(
    readConfig({ LOG_LEVEL: 'silent', DATABASE_URL: config.DATABASE_URL, METRICS_PORT: String(config.METRICS_PORT) })
  )
  t.teardown(async () => { await other.close() })
  await t.rejects(
    async () => {
      await other.ready()
    },
    { message: `METRICS_PORT ${config.METRICS_PORT} is in use. Set METRICS_PORT to another port, or leave it empty.` }
  )
})

t.test('without METRICS_PORT, there is no instrumentation', async (t) => {
  const { app } = await startApp(t)
  t.equal(app.instrumentation, undefined)
})
