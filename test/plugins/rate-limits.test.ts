// Only on SQLite: counts requests in memory.

import t from 'tap'
import type { Operation } from '../../src/openapi/document.ts'
import { startApp } from '../support/app.ts'
import { expandComponents } from '../support/expand-components.ts'
import { setClockBack } from '../support/machine-clock.ts'
import { leaveWhileItWaits } from '../support/socket.ts'

const WRONG = { authorization: 'Bearer psk_AAAAAAAA_notakey' }

t.test('limits are off by default', async (t) => {
  const { openAccount, nobody } = await startApp(t)
  const store = await openAccount()
  for (let i = 0; i < 30; i++) await store.get('/account')
  const { status, headers } = await store.get('/account')
  t.equal(status, 200)
  t.equal(headers.ratelimit, undefined)
  t.equal((await nobody.get('/account', WRONG)).headers.ratelimit, undefined)
})

t.test('an account above its limit gets 429 with Retry-After, and other accounts continue', async (t) => {
  const { openAccount } = await startApp(t, { RATE_LIMIT_PER_ACCOUNT: '3' })
  const [busy, calm] = [await openAccount(), await openAccount()]
  const answers = []
  for (let i = 0; i < 4; i++) answers.push(await busy.get('/account'))
  t.same(answers.map(({ status }) => status), [200, 200, 200, 429])
  t.same(answers.map(({ headers }) => headers['ratelimit-policy']), Array(4).fill('"default";q=3;w=60'))
  t.same(
    answers.map(({ headers }) => /^"default";r=(\d+);t=\d+$/.exec(String(headers.ratelimit))?.[1]),
    ['2', '1', '0', '0']
  )
  const [, seconds] = /t=(\d+)$/.exec(String(answers[3]!.headers.ratelimit)) ?? []
  t.ok(Number(answers[3]!.headers['retry-after']) >= Number(seconds), 'Retry-After is not earlier than t')
  t.same(answers[3]!.body, {
    code: 'rate_limited',
    message: `Too many requests. Try again in ${seconds} seconds.`,
    status: 429
  })
  t.equal((await calm.get('/account')).status, 200)
})

t.test('a window ends after its time although the clock of the machine is set back', async (t) => {
  const { openAccount } = await startApp(t, { RATE_LIMIT_PER_ACCOUNT: '1' })
  const store = await openAccount()
  t.equal((await store.get('/account')).status, 200)
  setClockBack(t)
  const { status, headers } = await store.get('/account')
  t.equal(status, 429)
  t.ok(Number(headers['retry-after']) <= 60, `after ${headers['retry-after']} s`)
})

t.test('the document has the fields of a limit on the responses that can have them', async (t) => {
  const found = async (settings: Record<string, string>): Promise<object> => {
    const { nobody } = await startApp(t, settings)
    const { paths } = expandComponents((await nobody.get('/openapi.json')).body as object)
    const statusesOf = ({ responses }: Operation): string[] =>
      Object.keys(responses).filter((status) => responses[status]!.headers!['RateLimit'] !== undefined)
    return { signup: statusesOf(paths['/accounts']!['post']!), read: statusesOf(paths['/account']!['get']!) }
  }
  const signup = ['201', '400', '403', '408', '412', '413', '414', '429', '431', '500', '503']
  const read = ['200', '304', '400', '401', '408', '412', '414', '429', '431', '500', '503']
  t.same(await found({ LAB: 'false' }), { signup: ['429'], read: ['429'] })
  t.same(await found({ LAB: 'false', RATE_LIMIT_SIGNUP: '2' }), { signup, read: ['429'] })
  t.same(await found({ LAB: 'false', RATE_LIMIT_FAILED_AUTH: '2' }), { signup: ['429'], read: ['401', '429'] })
  t.same(await found({ LAB: 'false', RATE_LIMIT_PER_ACCOUNT: '2' }), { signup: ['429'], read })
})

t.test('all keys of an account share its limit', async (t) => {
  const { openAccount, withKey } = await startApp(t, { RATE_LIMIT_PER_ACCOUNT: '3' })
  const store = await openAccount()
  const { body: { apiKey } } = await store.post('/account/keys', {})
  const second = withKey(apiKey)
  const statuses = []
  for (const client of [second, store, second]) statuses.push((await client.get('/account')).status)
  t.same(statuses, [200, 200, 429])
})

t.test('304 responses and replays count as requests', async (t) => {
  const { openAccount } = await startApp(t, { RATE_LIMIT_PER_ACCOUNT: '4' })
  const store = await openAccount()
  const { headers: { etag } } = await store.get('/account')
  t.equal((await store.get('/account', { 'if-none-match': String(etag) })).status, 304)
  for (const status of [201, 201, 429]) {
    t.equal((await store.post('/messages', { message: 'Hello' }, { 'idempotency-key': 'once' })).status, status)
  }
})

t.test('an address that opens too many accounts gets 429, and rejected requests do not count', async (t) => {
  const { nobody } = await startApp(t, { RATE_LIMIT_SIGNUP: '2' })
  const answers = []
  for (const name of ['', 'A store', 5, 'A store', 'A store']) answers.push(await nobody.post('/accounts', { name }))
  t.same(answers.map(({ status }) => status), [400, 201, 400, 201, 429])
  t.same(answers.map(({ headers }) => headers['ratelimit-policy']), Array(5).fill('"default";q=2;w=3600'))
  t.same(
    answers.map(({ headers }) => /^"default";r=(\d);t=3[56]\d\d$/.exec(String(headers.ratelimit))?.[1]),
    ['1', '1', '0', '0', '0']
  )
  t.ok(Number(answers[4]!.headers['retry-after']) > 3500, 'it may try again at the end of the hour')
})

t.test('requests at the same time cannot open more accounts than the limit', async (t) => {
  const { nobody } = await startApp(t, { RATE_LIMIT_SIGNUP: '3' })
  const answers = await Promise.all(
    Array.from({ length: 12 }, async () => await nobody.post('/accounts', { name: 'A store' })))
  t.equal(answers.filter(({ status }) => status === 201).length, 3)
  const refused = answers.filter(({ status }) => status === 429)
  t.equal(refused.length, 9)
  for (const { headers, body } of refused) {
    const seconds = String(headers['retry-after'])
    t.equal(headers.ratelimit, `"default";r=0;t=${seconds}`)
    t.equal(body.message, `Too many requests. Try again in ${seconds} seconds.`)
  }
})

t.test('clients that leave before their requests start use up no limit, and open no account', async (t) => {
  const running = await startApp(t, { RATE_LIMIT_SIGNUP: '2', TRUST_PROXY: '1' })
  const body = JSON.stringify({ name: 'A store' })
  const address = { 'x-forwarded-for': '203.0.113.1' }
  const head = 'POST /accounts HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.1\r\n' +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  for (let i = 0; i < 4; i++) await leaveWhileItWaits(running, head + body)
  t.equal((await running.nobody.post('/accounts', JSON.parse(body), address)).status, 201)
  t.equal(await running.app.database.prisma.account.count(), 1)
})

t.test('behind a number of proxies, the address that the first of them saw is limited', async (t) => {
  const open = async (hops: string, forwarded: string[]): Promise<number[]> => {
    const { nobody } = await startApp(t, { RATE_LIMIT_SIGNUP: '1', TRUST_PROXY: hops })
    const statuses = []
    for (const field of forwarded) {
      const { status } = await nobody.post('/accounts', { name: 'A store' }, { 'x-forwarded-for': field })
      statuses.push(status)
    }
    return statuses
  }
  t.same(
    await open('1', ['203.0.113.1', '198.51.100.1, 203.0.113.1', '198.51.100.1, 203.0.113.2']), [201, 429, 201],
    'what the client wrote is ignored')
  t.same(
    await open('2', ['203.0.113.1, 10.0.0.1', '198.51.100.1, 203.0.113.1, 10.0.0.1', '203.0.113.2, 10.0.0.1']),
    [201, 429, 201])
  t.same(await open('', ['203.0.113.1', '203.0.113.2']), [201, 429], 'without proxies, the field is ignored')
})

t.test('the port of a forwarded address makes no other client, and one that cannot be read is its proxy', async (t) => {
  const forwarded = [
    ['203.0.113.1', '203.0.113.1:5678', '203.0.113.1:80', '[203.0.113.1]:1'],
    ['[2001:db8::1]:80', '[2001:db8::1]:81', '[2001:db8::1]', '2001:db8::1', '[2001:db8::2]:80'],
    ['unknown', '_hidden, ', '203.0.113.256', '203.0.113.1, unknown', '[::1', '2001:db8::1:80:x', '']
  ]
  for (const fields of forwarded) {
    const { nobody } = await startApp(t, { RATE_LIMIT_FAILED_AUTH: '1', TRUST_PROXY: '1' })
    const statuses = []
    for (const field of fields) {
      statuses.push((await nobody.get('/account', { ...WRONG, 'x-forwarded-for': field })).status)
    }
    t.same(statuses, [401, ...Array(fields.length - 1).fill(429)], fields[0]!)
    t.equal((await nobody.get('/account', { ...WRONG, 'x-forwarded-for': '198.51.100.1' })).status, 401)
  }
  const { nobody } = await startApp(t, { RATE_LIMIT_FAILED_AUTH: '1', TRUST_PROXY: '2' })
  const statuses = []
  for (const field of ['x, 10.0.0.1:80', '10.0.0.1', '203.0.113.1:1, 10.0.0.1:1', 'x, 203.0.113.1, 10.0.0.2']) {
    statuses.push((await nobody.get('/account', { ...WRONG, 'x-forwarded-for': field })).status)
  }
  t.same(statuses, [401, 429, 401, 429])
})

t.test('failed authentications are limited, and a valid key still works', async (t) => {
  const { openAccount, nobody } = await startApp(t, { RATE_LIMIT_FAILED_AUTH: '2' })
  const store = await openAccount()
  const statuses = []
  for (let i = 0; i < 4; i++) statuses.push((await nobody.get('/account', WRONG)).status)
  t.same(statuses, [401, 401, 429, 429])
  t.equal((await store.get('/account')).status, 200)
  t.equal((await nobody.get('/account')).status, 401, 'no credential is no bad credential')
  t.equal((await nobody.get('/account', { authorization: '' })).status, 401, 'nor is an empty one')
})

t.test('a request above the limit is rejected before its body is read', async (t) => {
  const { openAccount } = await startApp(t, { RATE_LIMIT_PER_ACCOUNT: '1' })
  const store = await openAccount()
  await store.get('/account')
  t.equal(
    (await store.request('POST', '/pets', { body: '{', headers: { 'content-type': 'application/json' } })).status,
    429
  )
})

t.test('many clients are counted at the same time', async (t) => {
  const { nobody } = await startApp(t, { RATE_LIMIT_FAILED_AUTH: '1', TRUST_PROXY: '1' })
  const from = async (n: number): Promise<number> =>
    (await nobody.get('/account', { ...WRONG, 'x-forwarded-for': `203.0.113.${n}` })).status
  const clients = Array.from({ length: 200 }, (_, n) => n)
  t.same(new Set(await Promise.all(clients.map(from))), new Set([401]))
  t.same(new Set(await Promise.all(clients.map(from))), new Set([429]), 'none is forgotten')
})
