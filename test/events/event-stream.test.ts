import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import type { ApiKeyCredential } from '../../src/accounts/commands.ts'
import type { Read } from '../../src/database/read-batching.ts'
import { createEventStreams, type EventStreams } from '../../src/events/event-stream.ts'
import { startApp, type Client, type TestApp } from '../support/app.ts'
import { eventually } from '../support/receiver.ts'
import { openStream } from '../support/stream.ts'

/** The feed of a service, with its reads in the hands of the test. */
interface Held {
  service: TestApp
  store: Client
  feed: EventStreams
  /** From now on reads wait until `goOn`. */
  hold: () => void
  goOn: () => void
  /** Waits until a read waits. */
  waiting: () => Promise<void>
  /** Lets the read go that waits, once there is one, and holds what comes next. */
  pass: () => Promise<void>
  /** The numbers of the events that a new stream was sent so far. */
  follow: (after: number, key?: number) => { ids: number[], leave: () => void, ended: () => boolean }
  reads: () => number
}

async function holdReads (t: Test): Promise<Held> {
  const service = await startApp(t)
  const store = await service.openAccount()
  const holder = await holderOf(store)
  const gate = new EventEmitter()
  let held = false
  let waits = 0
  let count = 0
  const read: Read = async (query, input) => {
    count++
    if (held) {
      waits++
      await once(gate, 'open')
    }
    return await service.app.read(query, input)
  }
  gate.setMaxListeners(100)
  const feed = createEventStreams(read, service.app.log)
  t.teardown(feed.close)
  const hold = (): void => { held = true }
  const waiting = async (): Promise<void> => { await eventually(() => waits > 0) }
  function goOn (): void {
    held = false
    waits = 0
    gate.emit('open')
  }
  return {
    service,
    store,
    feed,
    hold,
    goOn,
    waiting,
    async pass () {
      await waiting()
      goOn()
      hold()
    },
    follow (after, key = holder.key) {
      const ids: number[] = []
      const stream = feed.follow({ ...holder, key }, after, () => 0)
      let ended = false
      stream.on('data', (bytes: Buffer) => { for (const [, id] of bytes.toString().matchAll(/^id: (\d+)$/gm)) ids.push(Number(id)) })
      stream.on('error', () => {}).on('end', () => { ended = true })
      return { ids, leave: () => { stream.destroy() }, ended: () => ended }
    },
    reads: () => count
  }
}

async function holderOf (store: Client): Promise<ApiKeyCredential> {
  const { body: [{ id }] } = await store.get('/account/keys')
  return { account: store.account!, key: id, readOnly: false, expiresAt: undefined, lastUsedAt: undefined }
}

t.test('a stream hears on, though the one it came beside left at that moment', async (t) => {
  const { store, feed, hold, goOn, waiting, pass, follow } = await holdReads(t)
  const add = async (): Promise<void> => { await store.post('/categories', { name: 'Dogs' }) }
  await add()
  const old = follow(0)
  await eventually(() => old.ids.length === 1)
  await sleep(50)
  hold()
  const next = follow(1)
  // Its key, and then its events.
  await pass()
  await waiting()
  await add()
  // The new connection reads an event of which the old one has not heard, and has it read for that one, too.
  await pass()
  await waiting()
  old.leave()
  await sleep(20)
  goOn()
  await eventually(() => next.ids.length === 1)
  await sleep(50)
  await add()
  feed.wake(store.account!)
  await eventually(() => next.ids.length === 2)
  t.same(next.ids, [2, 3])
})

t.test('an account that nobody follows any more is not read again', async (t) => {
  const { store, hold, goOn, waiting, pass, follow, reads, feed } = await holdReads(t)
  hold()
  const early = follow(0)
  await pass()
  await waiting()
  early.leave()
  await sleep(20)
  goOn()
  await sleep(50)
  const before = reads()
  feed.wake(store.account!)
  await sleep(50)
  t.equal(reads(), before)
})

t.test('a stream that begins while the service stops ends at once', async (t) => {
  const { feed, follow } = await holdReads(t)
  feed.close()
  const late = follow(0)
  await eventually(late.ended)
  t.same(late.ids, [])
})

t.test('a stream ends before a gap, when what comes next for it was removed', async (t) => {
  for (const removed of [3, 5]) {
    const { service, store, hold, goOn, waiting, follow, reads } = await holdReads(t)
    for (let i = 0; i < 5; i++) await store.post('/categories', { name: 'Dogs' })
    hold()
    const slow = follow(0)
    await waiting()
    await service.app.database.writer.event.deleteMany({ where: { id: { lte: removed } } })
    goOn()
    await eventually(slow.ended)
    t.same(slow.ids, [], `${removed} of 5 removed`)
    t.equal(reads(), 2)
  }
})

t.test('a stream of a key that was revoked before ends at once', async (t) => {
  const { store, follow } = await holdReads(t)
  await store.post('/categories', { name: 'Dogs' })
  const stream = follow(0, 4_000_000)
  await eventually(stream.ended)
  t.same(stream.ids, [])
})

t.test('what fails to be read is read again, and the stream stays', async (t) => {
  const service = await startApp(t)
  const store = await service.openAccount()
  let broken = false
  const feed = createEventStreams(async (query, input) => {
    if (broken) throw new Error('the database is away')
    return await service.app.read(query, input)
  }, service.app.log)
  t.teardown(feed.close)
  const holder = await holderOf(store)
  let text = ''
  const stream = feed.follow(holder, 0, () => 0)
  let ended = false
  stream.on('data', (bytes: Buffer) => { text += bytes.toString() }).on('close', () => { ended = true })
  await sleep(50)
  broken = true
  await store.post('/categories', { name: 'Dogs' })
  feed.wake(store.account!)
  await sleep(50)
  t.equal(ended, false)
  broken = false
  feed.wake(store.account!)
  await eventually(() => text.includes('id: 1\n'))
  t.equal(ended, false)
})

t.test('more accounts are followed than reads may wait', { timeout: 60_000 }, async (t) => {
  const service = await startApp(t, { QUEUE_LIMIT: '60' })
  const stores: Client[] = []
  while (stores.length < 150) stores.push(...await Promise.all(Array.from({ length: 30 }, async () => await service.openAccount())))
  const last = stores[149]!
  const { body: second } = await last.post('/account/keys', {})
  const streams = []
  for (const store of stores) streams.push(await openStream(service, store === last ? { key: second.apiKey } : store))
  let ended = 0
  for (const stream of streams) stream.ended.then(() => { ended++ }, () => {})
  t.equal((await last.delete(`/account/keys/${second.id}`)).status, 204)
  // Past the next poll and the next look at the keys.
  await sleep(6_500)
  t.equal(ended, 1, 'the stream of the revoked key alone')
  await Promise.all(stores.slice(0, 30).map(async (store) => await store.post('/categories', { name: 'Dogs' })))
  for (const stream of streams.slice(0, 30)) await stream.until(1)
  for (const stream of streams) stream.close()
})

t.test('a reader that keeps up is sent everything, however much happens at once', { timeout: 60_000 }, async (t) => {
  const service = await startApp(t)
  const store = await service.openAccount()
  const stream = await openStream(service, store)
  const message = '漢'.repeat(10_000)
  // Some 12 MB, 200 at a time in one transaction.
  for (let i = 0; i < 2; i++) await Promise.all(Array.from({ length: 200 }, async () => await store.post('/messages', { message })))
  await stream.until(400, 30_000)
  t.same(stream.events.map(({ id }) => id), Array.from({ length: 400 }, (_, i) => i + 1))
  stream.close()

  // And one that comes later, and reads slowly, at its own pace.
  const late = await openStream(service, store)
  for (let i = 0; i < 20; i++) {
    late.pause()
    await sleep(50)
    late.resume()
    await sleep(5)
  }
  await late.until(400, 30_000)
  t.same(late.events.map(({ id }) => id), Array.from({ length: 400 }, (_, i) => i + 1))
  late.close()
})
