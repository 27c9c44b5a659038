// Only on SQLite: calls the service over HTTP; no statement decides what a client does.

import t from 'tap'
import { createClient, type Client, type Event, type FollowOptions } from '../../src/client/client.ts'
import { startApp } from '../support/app.ts'
import { eventually } from '../support/receiver.ts'
import { answerWith, openProxy } from './unreliable-proxy.ts'

t.test('the feed', async (t) => {
  const { port } = await startApp(t)
  const proxy = await openProxy(t, port, ({ url }) => url === '/events')
  const { apiKey } = await createClient({ url: proxy.url }).createAccount({ name: 'A store' })
  const store = createClient({ url: proxy.url, apiKey })
  const send = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await store.createMessage({ message: 'Hello' })
  }
  const streams = () => proxy.requests.filter(({ path }) => path === '/events')

  await t.test('resumes after each end of its connection, without a gap', async (t) => {
    await send(3)
    const stop = new AbortController()
    const feed = collect(store, { signal: stop.signal })
    await eventually(() => feed.ids.length >= 3)
    const stopping = '{"code":"shutting_down","message":"","status":503}'
    proxy.faults = [answerWith(502, 'Bad gateway'), answerWith(503, stopping)]
    proxy.cut()
    await send(3)
    await eventually(() => feed.ids.length >= 6)
    proxy.cut()
    await send(3)
    await eventually(() => feed.ids.length >= 9)
    stop.abort()
    t.equal(await feed.ended, undefined, 'the signal ends the iteration')
    t.strictSame(feed.ids, [1, 2, 3, 4, 5, 6, 7, 8, 9])
    t.strictSame(streams().map(({ headers }) => headers['last-event-id']), [undefined, '3', '3', '3', '6'])
  })

  await t.test('begins after a position, and beyond the newest event with the next one', async (t) => {
    const before = proxy.answered
    const stop = new AbortController()
    const feed = collect(store, { after: Number.MAX_SAFE_INTEGER, signal: stop.signal })
    await eventually(() => proxy.answered > before)
    // The connection breaks before an event has come, and the next event happens before the stream is open again.
    await new Promise((resolve) => setTimeout(resolve, 200))
    proxy.cut()
    await send(2)
    await eventually(() => feed.ids.length >= 2)
    stop.abort()
    await feed.ended
    t.strictSame(feed.ids, [10, 11])

    const some: Event[] = []
    for await (const event of store.followEvents({ after: 8 })) {
      some.push(event)
      if (some.length === 2) break
    }
    t.match(some, [{ id: 9, type: 'message.created', data: { message: { message: 'Hello' } } }, { id: 10 }])
  })

  await t.test('a loop that ends closes its connection', async (t) => {
    for await (const event of store.followEvents()) {
      t.equal(proxy.open, 1)
      if (event.id === 2) break
    }
    await eventually(() => proxy.open === 0)
  })

  await t.test('ends within the events that have arrived when its signal is aborted', async (t) => {
    const stop = new AbortController()
    const ids: number[] = []
    for await (const { id } of store.followEvents({ signal: stop.signal })) {
      ids.push(id)
      stop.abort()
    }
    t.strictSame(ids, [1])
  })

  await t.test('throws an error that stays', async (t) => {
    const stranger = createClient({ url: proxy.url, apiKey: 'psk_nonsense' })
    await t.rejects(stranger.followEvents().next(), { code: 'unauthorized', status: 401 })
    proxy.faults = [answerWith(410, '{"code":"events_expired","message":"Too old","status":410}')]
    await t.rejects(store.followEvents({ after: 1 }).next(), { code: 'events_expired' })
    const later = '{"code":"injected_fault","message":"Later","status":503}'
    proxy.faults = [answerWith(503, later, { 'retry-after': '61' })]
    await t.rejects(store.followEvents().next(), { code: 'injected_fault', retryAfterMs: 61_000 })
    t.strictSame(await store.followEvents({ signal: AbortSignal.abort() }).next(), { value: undefined, done: true })
  })
})

interface Feed { ids: number[], ended: Promise<void> }

/** Follows the feed in the background. */
function collect (store: Client, options: FollowOptions): Feed {
  const ids: number[] = []
  const ended = (async () => { for await (const { id } of store.followEvents(options)) ids.push(id) })()
  return { ids, ended }
}
