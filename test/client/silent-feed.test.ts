// Only on SQLite: calls the service over HTTP; no statement decides what a client does.

import t from 'tap'
import { startApp } from '../support/app.ts'
import { holdAnswer, openProxy, type Fault } from './unreliable-proxy.ts'

// The client keeps the timers that it finds when it is loaded. Here, the one for a silent feed fires soon.
const SILENCE_MS = 45_000
const { setTimeout: realSetTimeout } = globalThis
let silences = 0
globalThis.setTimeout = ((callback: () => void, ms: number) => {
  if (ms === SILENCE_MS) silences++
  return realSetTimeout(callback, ms === SILENCE_MS ? 200 : ms)
}) as typeof globalThis.setTimeout
const { createClient } = await import('../../src/client/client.ts')
globalThis.setTimeout = realSetTimeout

/** Begins an event stream and sends nothing, as a connection does whose other end is gone. */
const stayingSilent: Fault = (_client, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
}

t.test('a feed that is silent for too long is opened again', async (t) => {
  const { port } = await startApp(t)
  const proxy = await openProxy(t, port, ({ url }) => url === '/events')
  const { apiKey } = await createClient({ url: proxy.url }).createAccount({ name: 'A store' })
  const store = createClient({ url: proxy.url, apiKey })
  await store.createMessage({ message: 'Hello' })
  // With and without the head of a response.
  proxy.faults = [stayingSilent, holdAnswer]
  // The signal only ends a test that waits for ever.
  const signal = AbortSignal.timeout(180_000)
  t.match((await store.followEvents({ signal }).next()).value, { id: 1 })
  // On a slow machine, the third connection can be silent for too long as well.
  t.ok(proxy.requests.filter(({ path }) => path === '/events').length >= 3, 'the feed was opened again')
  t.ok(silences >= 2, 'each connection has its limit')
})
