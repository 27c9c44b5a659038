// Only on SQLite: calls a receiver without a database.

import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import {
  boundResolve, createWebhookClient, REQUEST_TIMEOUT_MS, type Resolve, type WebhookRequest, type WebhookResponse
} from '../../src/deliveries/http-client.ts'
import { classifyResponse } from '../../src/deliveries/retry-policy.ts'
import { setClockAhead } from '../support/machine-clock.ts'
import { openReceiver } from '../support/receiver.ts'

const never = new AbortController().signal
const secrets = ['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD']

/** Returns a request for an address. */
const requestTo = (url: string): WebhookRequest => ({ url, id: 'evt_1_1', body: '{}', secrets })

t.test('names that are being resolved are shared, and bounded', async (t) => {
  const open: Array<() => void> = []
  const address = { address: '127.0.0.1', family: 4 }
  const resolve = boundResolve((_host, done) => { open.push(() => { done(null, [address]) }) }, 2)
  const results: string[] = []
  const ask = (host: string): void => {
    resolve(host, (error, addresses) => { results.push(`${host} ${error?.message ?? addresses[0]!.address}`) })
  }
  for (const host of ['a.test', 'a.test', 'b.test', 'c.test']) ask(host)
  t.same(results, [], 'a refusal is no call within the call')
  await nextTurn()
  t.same(results.splice(0), ['c.test Too many host names are being resolved'])
  t.equal(open.length, 2)
  open.shift()!()
  t.same(results.splice(0), ['a.test 127.0.0.1', 'a.test 127.0.0.1'])
  ask('c.test')
  for (const answer of open.splice(0)) answer()
  t.same(results, ['b.test 127.0.0.1', 'c.test 127.0.0.1'])
})

t.test('the addresses of a host name are checked for every request', async (t) => {
  const receiver = await openReceiver(t)
  const { port, pathname } = new URL(receiver.url)
  const asked: string[] = []
  const answers: Record<string, string[]> = {
    'private.test': ['10.0.0.1'],
    'loopback.test': ['127.0.0.1'],
    'mapped.test': ['::ffff:127.0.0.1'],
    'both.test': ['8.8.8.8', '127.0.0.1'],
    'none.test': []
  }
  const resolve: Resolve = (host, done) => {
    asked.push(host)
    done(null, (answers[host] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 })))
  }
  const strict = createWebhookClient({ allowPrivate: false, resolve })
  t.teardown(strict.close)
  for (const host of Object.keys(answers)) {
    for (let i = 0; i < 2; i++) {
      const { status, error } = await strict.send(requestTo(`http://${host}:${port}${pathname}`), never)
      t.equal(status, undefined)
      t.match(error, host === 'none.test' ? /resolves to no address$/ : /not public, .* WEBHOOKS_ALLOW_PRIVATE/, host)
    }
  }
  t.equal(asked.length, 10, 'resolved for every request')
  t.equal(receiver.received.length, 0)

  const open = createWebhookClient({ allowPrivate: true, resolve })
  t.teardown(open.close)
  const response = await open.send(requestTo(`http://loopback.test:${port}${pathname}`), never)
  t.match(response, { status: 204 }, 'the connection goes to the resolved address')
  t.equal(receiver.received[0]?.headers.host, `loopback.test:${port}`)
})

t.test('an error without a response is explained in words', async (t) => {
  const client = createWebhookClient({ allowPrivate: true })
  t.teardown(client.close)
  const { url } = await openReceiver(t, (response) => { response.socket?.destroy() })
  const garbage = await openReceiver(t, (response) => { response.socket?.end('hello\r\n\r\n') })
  for (const [target, error] of [
    ['http://127.0.0.1:1/', 'The address refused the connection'],
    [url, 'The connection was closed without a response'],
    [garbage.url, 'The response is not valid HTTP'],
    [url.replace('http:', 'https:'), /secure|request failed/]
  ] as const) {
    t.match(await client.send(requestTo(target), never), { error }, target)
  }
})

t.test('a response 101 counts as a response and is refused', { timeout: 300_000 }, async (t) => {
  const client = createWebhookClient({ allowPrivate: true })
  t.teardown(client.close)
  const receiver = await openReceiver(t, (response) => {
    response.socket?.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  })
  t.match(await client.send(requestTo(receiver.url), never), { status: 101 })
  t.equal(classifyResponse(101), 'refused')
})

t.test('a receiver that sends too much before its response is given up', { timeout: 300_000 }, async (t) => {
  // No request ends by its time-out.
  const client = createWebhookClient({ allowPrivate: true, timeoutMs: 600_000 })
  t.teardown(client.close)
  const repeated = async (text: string, times: number, end = ''): Promise<WebhookResponse> => {
    const { url } = await openReceiver(t, ({ socket }) => {
      socket?.on('error', () => {})
      for (let i = 0; i < times; i++) socket?.write(text)
      if (end !== '') socket?.end(end)
    })
    return await client.send(requestTo(url), never)
  }
  const head = 'HTTP/1.1 204 No Content\r\n\r\n'
  for (const line of ['100 Continue', '103 Early Hints']) {
    const informational = `HTTP/1.1 ${line}\r\n\r\n`
    t.match(await repeated(informational, 8, head), { status: 204 }, `eight responses ${line}`)
    const error = 'There were more than 8 informational responses (1xx)'
    t.match(await repeated(informational, 9), { error }, `nine responses ${line}`)
  }
  t.match(await repeated('\r\n', 1, head), { status: 204 })
  t.match(await repeated('\r\n'.repeat(50_000), 2), { error: 'There was no response in 147456 bytes' })
})

t.test('the scheme of a URL may be in capitals', async (t) => {
  const client = createWebhookClient({ allowPrivate: true })
  t.teardown(client.close)
  const { url } = await openReceiver(t)
  t.match(await client.send(requestTo(url.replace('http:', 'HTTP:')), never), { status: 204 })
  const secure = createServer((socket) => {
    socket.once('data', (data) => {
      // RFC 8446 section 5.1: 22 is the type of records of the handshake.
      t.equal(data[0], 22, 'the client speaks TLS')
      socket.destroy()
    })
  })
  secure.listen(0, '127.0.0.1')
  await once(secure, 'listening')
  t.teardown(() => secure.close())
  const { port } = secure.address() as AddressInfo
  const { error } = await client.send(requestTo(`HTTPS://127.0.0.1:${port}/`), never)
  t.equal(error, 'The connection was closed without a response')
})

t.test('a request without a response ends after its timeout, 15 s by default', { timeout: 300_000 }, async (t) => {
  t.equal(REQUEST_TIMEOUT_MS, 15_000)
  const standard = createWebhookClient({ allowPrivate: true })
  t.teardown(standard.close)
  t.equal(standard.timeoutMs, REQUEST_TIMEOUT_MS)
  const client = createWebhookClient({ allowPrivate: true, timeoutMs: 500 })
  t.teardown(client.close)
  const receiver = await openReceiver(t, () => {})
  const startedAt = Date.now()
  const response = await client.send(requestTo(receiver.url), never)
  t.match(response, { error: 'There was no response within 0.5 seconds' })
  t.ok(Date.now() - startedAt >= 490, `after ${Date.now() - startedAt} ms`)
})

t.test('a response whose head comes in time counts, although its body takes longer', async (t) => {
  const receiver = await openReceiver(t, (response) => { response.writeHead(200).write('Slow') })
  const client = createWebhookClient({ allowPrivate: true, timeoutMs: 300 })
  t.teardown(client.close)
  const { status, answer } = await client.send(requestTo(receiver.url), never)
  t.equal(status, 200)
  t.match(answer, { body: 'Slow', truncated: true })
})

t.test('a connection that the receiver closed meanwhile is no failed attempt', async (t) => {
  const client = createWebhookClient({ allowPrivate: true })
  t.teardown(client.close)
  const sockets = new Map<unknown, number>()
  const { url } = await openReceiver(t, (response) => {
    const { socket } = response
    const calls = (sockets.get(socket) ?? 0) + 1
    sockets.set(socket, calls)
    // As a server whose keep-alive time ends while the request is on its way.
    if (calls > 1) socket?.resetAndDestroy()
    else response.writeHead(204).end()
  })
  for (let i = 0; i < 3; i++) t.match(await client.send(requestTo(url), never), { status: 204 }, `request ${i + 1}`)
  t.equal(sockets.size, 3, 'each reused connection was replaced')
})

const skip = process.platform !== 'linux' && 'there is one loopback address'

t.test('a request tries four addresses of a name', { skip }, async (t) => {
  const { port, pathname } = new URL((await openReceiver(t)).url)
  const refusing = [2, 3, 4, 5].map((n) => ({ address: `127.0.0.${n}`, family: 4 }))
  const listening = { address: '127.0.0.1', family: 4 }
  const respond = async (...addresses: typeof refusing): Promise<WebhookResponse> => {
    const client = createWebhookClient({ allowPrivate: true, resolve: (_host, done) => { done(null, addresses) } })
    t.teardown(client.close)
    return await client.send(requestTo(`http://many.test:${port}${pathname}`), never)
  }
  t.match(await respond(...refusing.slice(1), listening), { status: 204 })
  t.match(await respond(...refusing, listening), { status: undefined, error: String })
})

t.test('a request that is repeated has its whole time although the clock of the machine is set ahead', async (t) => {
  const client = createWebhookClient({ allowPrivate: true, timeoutMs: 180_000 })
  t.teardown(client.close)
  const { url } = await openReceiver(t, (response, _received, nth) => {
    if (nth === 2) {
      setClockAhead(t)
      response.socket?.resetAndDestroy()
    } else {
      // Longer than a time-out that has passed.
      setTimeout(() => { response.writeHead(204).end() }, 100)
    }
  })
  for (let i = 0; i < 2; i++) t.match(await client.send(requestTo(url), never), { status: 204 }, `request ${i + 1}`)
})
