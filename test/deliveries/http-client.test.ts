import t from 'tap'
import { createWebhookClient, type Resolve } from '../../src/deliveries/http-client.ts'
import { classifyResponse } from '../../src/deliveries/retry-policy.ts'
import { openReceiver } from '../support/receiver.ts'

const never = new AbortController().signal
const secrets = ['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD']

t.test('a name is judged by what it stands for, every time', async (t) => {
  const receiver = await openReceiver(t)
  const port = new URL(receiver.url).port
  const asked: string[] = []
  const answers: Record<string, string[]> = {
    'private.test': ['10.0.0.1'], 'loopback.test': ['127.0.0.1'], 'mapped.test': ['::ffff:127.0.0.1'], 'both.test': ['8.8.8.8', '127.0.0.1'], 'none.test': []
  }
  const resolve: Resolve = (host, done) => {
    asked.push(host)
    done(null, (answers[host] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 })))
  }
  const strict = createWebhookClient({ allowPrivate: false, resolve })
  t.teardown(strict.close)
  for (const host of Object.keys(answers)) {
    for (let i = 0; i < 2; i++) {
      const { status, error } = await strict.call({ url: `http://${host}:${port}/`, id: 'evt_1_1', body: '{}', secrets }, never)
      t.equal(status, undefined)
      t.match(error, /^The name stands for /, host)
    }
  }
  t.equal(asked.length, 10, 'looked up every time')
  t.equal(receiver.received.length, 0)

  const open = createWebhookClient({ allowPrivate: true, resolve })
  t.teardown(open.close)
  t.same(await open.call({ url: `http://loopback.test:${port}/`, id: 'evt_1_1', body: '{}', secrets }, never), { status: 204 }, 'the connection goes to what was looked up')
  t.equal(receiver.received[0]?.headers.host, `loopback.test:${port}`)
})

t.test('what is no answer is told in words', async (t) => {
  const caller = createWebhookClient({ allowPrivate: true })
  t.teardown(caller.close)
  const { url } = await openReceiver(t, (response) => { response.socket?.destroy() })
  const garbage = await openReceiver(t, (response) => { response.socket?.end('hello\r\n\r\n') })
  for (const [target, error] of [
    ['http://127.0.0.1:1/', 'The address refused the connection'],
    [url, 'The connection was closed without an answer'],
    [garbage.url, 'The answer is not HTTP'],
    [url.replace('http:', 'https:'), /secure|call failed/]
  ] as const) {
    t.match(await caller.call({ url: target, id: 'evt_1_1', body: '{}', secrets }, never), { error }, target)
  }
})

t.test('who wants to switch protocols has answered, and no more', { timeout: 10_000 }, async (t) => {
  const caller = createWebhookClient({ allowPrivate: true })
  t.teardown(caller.close)
  const receiver = await openReceiver(t, (response) => {
    response.socket?.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  })
  t.same(await caller.call({ url: receiver.url, id: 'evt_1_1', body: '{}', secrets }, never), { status: 101 })
  t.equal(classifyResponse(101), 'refused')
})
