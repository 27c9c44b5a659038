// Only on SQLite: these commands call a service over HTTP.

import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { createForwarder } from '../../src/cli/forwarder.ts'
import { createProgram } from '../../src/cli/program.ts'
import type { Event } from '../../src/client/client.ts'
import { createWebhookClient } from '../../src/deliveries/http-client.ts'
import { startApp, type Client } from '../support/app.ts'
import { build, CLI, launch, petstore, until, type Running } from '../support/cli.ts'
import { setClockAhead } from '../support/machine-clock.ts'
import { openReceiver } from '../support/receiver.ts'

t.before(build)

interface Store { ada: Client, env: Record<string, string> }

async function openStore (t: Test, settings: Record<string, string> = {}): Promise<Store> {
  const { openAccount, port } = await startApp(t, settings)
  const ada = await openAccount()
  return { ada, env: { PETSTORE_URL: `http://127.0.0.1:${port}`, PETSTORE_API_KEY: ada.key! } }
}

function listen (t: Test, env: Record<string, string>, ...args: string[]): Running {
  return launch(t, process.execPath, [CLI, 'listen', ...args], { env })
}

t.test('events are forwarded, signed with the secret that is printed, a line for each', async (t) => {
  const { ada, env } = await openStore(t)
  const receiver = await openReceiver(t)
  await ada.post('/categories', { name: 'Dogs' })
  const running = listen(t, env, '--forward-to', receiver.url, '--types', 'category.*', '--from', '1')
  await until(running, () => receiver.received.length === 1)
  receiver.secrets = [/^Secret: (whsec_\S+)$/m.exec(running.out())![1]!]
  await ada.post('/messages', { message: 'Hello' })
  const { body: cats } = await ada.post('/categories', { name: 'Cats' })
  await receiver.until(2)
  const [first, second] = receiver.received
  t.same([first!.id, second!.id], [1, 3].map((event) => `evt_${ada.account}_${event}`))
  t.same(second!.event.data, { category: cats })
  const { body: events } = await ada.get('/events?after=2')
  t.same(second!.event, events[0])
  await until(running, () => running.out().includes('3 category.created'))
  const { code, out, err } = await running.stop('SIGINT')
  t.match(out, /^1 category\.created 204 \(\d+ ms\)\n3 category\.created 204 \(\d+ ms\)\n$/m)
  t.same([code, err], [0, ''])
})

t.test('without --from, it begins with the next event; it repeats what failed; --secret signs', async (t) => {
  const { ada, env } = await openStore(t)
  const secret = `whsec_${Buffer.alloc(24, 'x').toString('base64')}`
  const receiver = await openReceiver(t, (response, _received, nth) => {
    response.writeHead(nth === 1 ? 500 : 204).end()
  })
  receiver.secrets = [secret]
  await ada.post('/messages', { message: 'Before' })
  const running = listen(t, env, '--forward-to', receiver.url, '--secret', secret)
  await until(running, () => running.out().includes('after 1 to'))
  await ada.post('/messages', { message: 'Hello' })
  await ada.post('/messages', { message: 'Others do not wait' })
  await receiver.until(3)
  t.same(receiver.received.map(({ event }) => event.id), [2, 3, 2])
  t.equal(receiver.received[2]!.id, receiver.received[0]!.id)
  await until(running, () => running.out().split('2 message.created').length === 3)
  t.match(running.out(), /^2 message\.created 500 \(\d+ ms\), again in 1\.\d s$/m)
  t.same((await running.stop('SIGTERM')).code, 0)
})

t.test('--from a number that no event has yet waits for it', async (t) => {
  const { ada, env } = await openStore(t)
  const receiver = await openReceiver(t)
  await ada.post('/messages', { message: 'Before' })
  const running = listen(t, env, '--forward-to', receiver.url, '--from', '3')
  await until(running, () => running.out().includes('after 2 to'))
  receiver.secrets = [/^Secret: (whsec_\S+)$/m.exec(running.out())![1]!]
  await ada.post('/messages', { message: 'Hello' })
  await ada.post('/messages', { message: 'Hello again' })
  await receiver.until(1)
  t.same(receiver.received.map(({ event }) => event.id), [3])
  await running.stop('SIGTERM')
})

t.test('it ends when the receiver wants no more events, and says why it cannot go on', async (t) => {
  const { ada, env } = await openStore(t)
  await ada.post('/messages', { message: 'Hello' })
  const receiver = await openReceiver(t, (response) => { response.writeHead(410).end() })
  const gone = await listen(t, env, '--forward-to', receiver.url, '--from', '1').ended
  t.match(gone, { code: 1, err: 'The receiver responded with 410, so it wants no more events.\n' })
  for (const [args, set, code, err] of [
    [[], env, 2, /--forward-to/],
    [['--forward-to', 'localhost:4000'], env, 2, /http:\/\/localhost:4000\/hooks/],
    [['--forward-to', receiver.url, '--types', 'order*.x'], env, 2, /asterisk/],
    [['--forward-to', receiver.url, '--secret', 'whsec_eA=='], env, 2, /24 to 64 bytes/],
    [['--forward-to', receiver.url], {}, 2, /PETSTORE_API_KEY/],
    [['--forward-to', receiver.url], { ...env, PETSTORE_API_KEY: '' }, 2, /^Set PETSTORE_API_KEY/],
    [['--forward-to', receiver.url, '--api-key', ''], env, 2, /^Set PETSTORE_API_KEY/],
    [['--forward-to', receiver.url], { ...env, PETSTORE_URL: '' }, 1, /127\.0\.0\.1:3000|The service responded: /],
    [['--forward-to', receiver.url, '--url', 'ftp://x'], env, 2, /http or https/],
    [['--forward-to', receiver.url, '--api-key', 'psk_wrong'], env, 1, /The service responded: /],
    [['--forward-to', receiver.url, '--url', 'http://127.0.0.1:1'], env, 1, /http:\/\/127\.0\.0\.1:1/]
  ] as Array<[string[], Record<string, string>, number, RegExp]>) {
    t.match(await petstore(t, ['listen', ...args], { env: set }), { code, err }, args.join(' '))
  }
})

t.test('control characters of a service do not reach the terminal', async (t) => {
  const event = JSON.stringify({ id: 1, type: 'a\u001b[31mb\u009b', timestamp: '', data: {} })
  const service = createServer(({ url, headers }, response) => {
    if (url === '/account') {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ id: 7, name: 'x', createdAt: 'x' }))
    } else if (headers.accept === 'text/event-stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'event-id': '1' }).write(`id: 1\ndata: ${event}\n\n`)
    } else {
      response.writeHead(200, { 'content-type': 'application/json', 'event-id': '0' }).end('[]')
    }
  }).listen(0, '127.0.0.1')
  await once(service, 'listening')
  t.teardown(() => { service.closeAllConnections(); service.close() })
  const receiver = await openReceiver(t)
  const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  const running = listen(t, { PETSTORE_URL: url, PETSTORE_API_KEY: 'psk_x' }, '--forward-to', receiver.url)
  await until(running, () => running.out().includes('204'))
  const { out } = await running.stop()
  t.match(out, '1 a\\u001b[31mb\\u009b 204')
  // eslint-disable-next-line no-control-regex
  t.notMatch(out, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
})

t.test('trigger causes an event of each type that a client can cause', async (t) => {
  const { ada, env } = await openStore(t)
  const [before, { log }] = [process.env, console]
  process.env = { ...before, ...env }
  t.teardown(() => {
    process.env = before
    console.log = log
  })
  const run = async (type: string): Promise<string[]> => {
    const lines: string[] = []
    console.log = (line: string) => { lines.push(line) }
    await createProgram().parseAsync(['trigger', type], { from: 'user' })
    return lines
  }
  const { out: help } = await petstore(t, ['trigger', '--help'])
  const types = /type of the event: ([^]*?)\n\s*\n/.exec(help)![1]!.split(',').map((type) => type.trim())
  t.ok(types.length >= 15 && types.includes('order.placed'), types.join())
  for (const type of types) {
    const printed = await run(type)
    const { body: events } = await ada.get('/events?limit=100&after=0')
    t.match(printed.at(-1), new RegExp(`^\\d+ ${type.replace('.', '\\.')}$`), printed.join())
    t.ok(events.some((event: { type: string }) => event.type === type), type)
  }
  t.match(await petstore(t, ['trigger', 'order.lost'], { env }), { code: 2, err: /--help lists/ })
})

t.test('trigger without a lab says what the service said', async (t) => {
  const { env } = await openStore(t, { LAB: 'false' })
  t.match(await petstore(t, ['trigger', 'fault.hit'], { env }), { code: 1, err: /^The service responded: / })
  t.match(await petstore(t, ['trigger', 'message.created'], { env }), { code: 0, out: '1 message.created\n' })
})

t.test('an event is sent again although the clock of the machine is set ahead', async (t) => {
  const receiver = await openReceiver(t, (response, _received, nth) => {
    if (nth === 1) setClockAhead(t)
    response.writeHead(nth === 1 ? 500 : 204).end()
  })
  const client = createWebhookClient({ allowPrivate: true })
  const stop = new AbortController()
  t.teardown(() => {
    stop.abort()
    client.close()
  })
  const secret = `whsec_${Buffer.alloc(24, 'x').toString('base64')}`
  const lines: string[] = []
  const forward = createForwarder({
    client, url: receiver.url, secret, account: 1, print: (line) => { lines.push(line) }, stop
  })
  await forward({ id: 1, type: 'message.created' } as Event)
  t.match(lines[0], /^1 message\.created 500 \(\d{1,6} ms\), again in /)
  await receiver.until(2)
})
