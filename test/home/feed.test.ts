// Only on SQLite: calls a function of the first page, over HTTP.

import { basename } from 'node:path'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { eventually } from '../support/receiver.ts'

interface Event { id: number, data: { category: { name: string } } }

interface FeedOptions {
  key: string | undefined
  after: number
  signal: AbortSignal
  onEvent: (event: Event) => void
  onState: () => void
}

// A path that the compiler does not follow: the page has a configuration of its own.
const FEED = '../../src/home/page/feed.js'

t.test('the first page reads events with line separators of Unicode', async (t) => {
  const { port, openAccount } = await startApp(t)
  const ada = await openAccount()
  const { fetch } = globalThis
  // The page asks for addresses beside its own.
  globalThis.fetch = async (address, init) => await fetch(`http://127.0.0.1:${port}/${basename(String(address))}`, init)
  const stop = new AbortController()
  t.teardown(() => {
    stop.abort()
    globalThis.fetch = fetch
  })
  const names = ['one\u2028line', 'one\u2029more', 'the last']
  for (const name of names) await ada.post('/categories', { name })
  const { follow } = await import(FEED) as { follow: (options: FeedOptions) => Promise<void> }
  const events: Event[] = []
  let failure: unknown
  follow({
    key: ada.key, after: 0, signal: stop.signal, onEvent: (event) => { events.push(event) }, onState () {}
  }).catch((error: unknown) => { failure = error })
  await eventually(() => failure !== undefined || events.length === names.length)
  t.equal(failure, undefined)
  t.same(events.map(({ data }) => data.category.name), names)
})
