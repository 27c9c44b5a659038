// Only on SQLite: calls functions of the first page, over HTTP.

import { basename } from 'node:path'
import t, { type Test } from 'tap'
import { startApp, type Client } from '../support/app.ts'
import { eventually } from '../support/receiver.ts'

interface Event { id: number, data: { category: { name: string } } }

interface FeedOptions {
  key: string | undefined
  after: number
  signal: AbortSignal
  onEvent: (event: Event) => void
  onState: () => void
}

interface Page {
  follow: (options: FeedOptions) => Promise<void>
  send: (method: string, path: string, options: object) => Promise<Response>
}

// Paths that the compiler does not follow: the page has a configuration of its own.
const FILES = ['../../src/home/page/feed.js', '../../src/home/page/service.js']

/** Lets functions of the page send their requests to a service. */
async function openPage (t: Test): Promise<Page & { ada: Client }> {
  const { port, openAccount } = await startApp(t, { LAB: 'true' })
  const { fetch } = globalThis
  // The page asks for addresses beside its own.
  globalThis.fetch = async (address, init) => await fetch(`http://127.0.0.1:${port}/${basename(String(address))}`, init)
  t.teardown(() => { globalThis.fetch = fetch })
  const [feed, service] = await Promise.all(FILES.map(async (file) => await import(file) as Page))
  return { ada: await openAccount(), follow: feed!.follow, send: service!.send }
}

t.test('the first page reads events with line separators of Unicode', async (t) => {
  const { ada, follow } = await openPage(t)
  const stop = new AbortController()
  t.teardown(() => { stop.abort() })
  const names = ['one\u2028line', 'one\u2029more', 'the last']
  for (const name of names) await ada.post('/categories', { name })
  const events: Event[] = []
  let failure: unknown
  follow({
    key: ada.key, after: 0, signal: stop.signal, onEvent: (event) => { events.push(event) }, onState () {}
  }).catch((error: unknown) => { failure = error })
  await eventually(() => failure !== undefined || events.length === names.length)
  t.equal(failure, undefined)
  t.same(events.map(({ data }) => data.category.name), names)
})

t.test('the first page takes a response that was cut for one that was lost', async (t) => {
  const { ada, send } = await openPage(t)
  await ada.post('/lab/faults', { operation: 'createMessage', effect: { type: 'truncate', bytes: 10 } })
  await t.rejects(send('POST', 'messages', { key: ada.key, body: { message: 'Hello' } }), {
    message: 'The service cannot be reached.'
  })
})
