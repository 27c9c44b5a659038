import { EventEmitter, once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import type { ApiKeyCredential } from '../../src/accounts/queries.ts'
import type { Read } from '../../src/database/reads/query.ts'
import { createEventStreams, STREAM_TIMINGS, type EventStreams } from '../../src/events/event-stream.ts'
import { streamRequests } from '../../src/journal/queries.ts'
import { startApp, type Client, type TestApp } from '../support/app.ts'
import { setClockBack } from '../support/machine-clock.ts'
import { eventually } from '../support/receiver.ts'
import { openStream, type Stream } from '../support/stream.ts'

/** The event streams of a service, whose reads the test can hold back. */
interface HeldStreams {
  service: TestApp
  store: Client
  streams: EventStreams
  /** Makes reads wait until `resume`. */
  hold: () => void
  resume: () => void
  /** Resolves when a read waits. */
  waiting: () => Promise<void>
  /** Resumes the read that waits, once there is one, and holds the reads after it. */
  pass: () => Promise<void>
  /** Opens a stream. `ids` are the numbers of the events that it was sent so far. */
  follow: (after: number, key?: number) => { ids: number[], leave: () => void, ended: () => boolean }
  /** Returns the number of reads so far. */
  reads: () => number
}

async function holdReads (t: Test): Promise<HeldStreams> {
  const service = await startApp(t)
  const store = await service.openAccount()
  const credential = await credentialOf(store)
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
  // Without the reads that the clock starts: tests count reads.
  const streams = createEventStreams(read, service.app.log, { keyCheckMs: 3_600_000, pollMs: 3_600_000 })
  t.teardown(streams.close)
  const hold = (): void => { held = true }
  const waiting = async (): Promise<void> => { await eventually(() => waits > 0) }
  function resume (): void {
    held = false
    waits = 0
    gate.emit('open')
  }
  return {
    service,
    store,
    streams,
    hold,
    resume,
    waiting,
    async pass () {
      await waiting()
      resume()
      hold()
    },
    follow (after, key = credential.key) {
      const ids: number[] = []
      const stream = streams.follow({ ...credential, key }, after, () => 0)
      let ended = false
      stream.on('data', (bytes: Buffer) => {
        for (const [, id] of bytes.toString().matchAll(/^id: (\d+)$/gm)) ids.push(Number(id))
      })
      stream.on('error', () => {}).on('end', () => { ended = true })
      return { ids, leave: () => { stream.destroy() }, ended: () => ended }
    },
    reads: () => count
  }
}

async function credentialOf (store: Client): Promise<ApiKeyCredential> {
  const { body: [{ id, prefix }] } = await store.get('/account/keys')
  const times = { expiresAt: undefined, accountExpiresAt: undefined, lastUsedAt: undefined }
  return { account: store.account!, key: id, prefix, readOnly: false, ...times }
}

t.test('a stream receives events although the follower that it joins leaves at that moment', async (t) => {
  const { store, streams, hold, resume, waiting, pass, follow } = await holdReads(t)
  const add = async (): Promise<void> => { await store.post('/categories', { name: 'Dogs' }) }
  await add()
  const old = follow(0)
  await eventually(() => old.ids.length === 1)
  await sleep(50)
  hold()
  const next = follow(1)
  // The first read is of its key, the second of its events.
  await pass()
  await waiting()
  await add()
  // The new follower reads an event that the old one has not received, and polls the cursor for both.
  await pass()
  await waiting()
  old.leave()
  await sleep(20)
  resume()
  await eventually(() => next.ids.length === 1)
  await sleep(50)
  await add()
  streams.wake(store.account!)
  await eventually(() => next.ids.length === 2)
  t.same(next.ids, [2, 3])
})

t.test('an account without followers is not read again', async (t) => {
  const { store, hold, resume, waiting, pass, follow, reads, streams } = await holdReads(t)
  hold()
  const early = follow(0)
  await pass()
  await waiting()
  early.leave()
  await sleep(20)
  resume()
  let before = -1
  // Reads that were under way can be followed by others.
  await eventually(async () => {
    before = reads()
    await sleep(300)
    return reads() === before
  })
  streams.wake(store.account!)
  await sleep(50)
  t.equal(reads(), before)
})

t.test('a stream that opens while the service stops ends at once', async (t) => {
  const { streams, follow } = await holdReads(t)
  streams.close()
  const late = follow(0)
  await eventually(late.ended)
  t.same(late.ids, [])
})

t.test('a stream ends before a gap when its next event was deleted', async (t) => {
  for (const deleted of [3, 5]) {
    const { service, store, hold, resume, waiting, follow, reads } = await holdReads(t)
    for (let i = 0; i < 5; i++) await store.post('/categories', { name: 'Dogs' })
    hold()
    const slow = follow(0)
    await waiting()
    await service.app.database.prisma.event.deleteMany({ where: { id: { lte: deleted } } })
    resume()
    await eventually(slow.ended)
    t.same(slow.ids, [], `${deleted} of 5 deleted`)
    t.equal(reads(), 2)
  }
})

t.test('a stream of a revoked key ends at once', async (t) => {
  const { store, follow } = await holdReads(t)
  await store.post('/categories', { name: 'Dogs' })
  const stream = follow(0, 4_000_000)
  await eventually(stream.ended)
  t.same(stream.ids, [])
})

t.test('a stream that ends is counted down once', async (t) => {
  const { store, streams, follow } = await holdReads(t)
  await store.post('/categories', { name: 'Dogs' })
  const open = [follow(0), follow(0)]
  const revoked = follow(0, 4_000_000)
  await eventually(() => revoked.ended() && open.every(({ ids }) => ids.length === 1))
  // Its connection closes as well.
  await setImmediate()
  t.equal(streams.countOf(store.account!), 2)
})

t.test('a stream that has ended counts until its client has read it, or has left', async (t) => {
  const { store, streams } = await holdReads(t)
  const credential = { ...await credentialOf(store), key: 4_000_000 }
  const stream = streams.follow(credential, 0, () => 0)
  await once(stream, 'ending')
  t.equal(streams.countOf(store.account!), 1)
  stream.destroy()
  await eventually(() => streams.countOf(store.account!) === 0)
})

t.test('a client that does not read the end of its stream is as any slow reader', async (t) => {
  const service = await startApp(t)
  const ada = await service.openAccount()
  const sockets: Socket[] = []
  service.app.server.on('request', ({ method, socket }) => { if (method === 'GET') sockets.push(socket) })
  const { body: { id, apiKey } } = await ada.post('/account/keys', {})
  const stream = await openStream(service, service.withKey(apiKey))
  await eventually(() => stream.comments.length === 1)
  t.equal(sockets[0]!.timeout, 0)
  t.equal((await ada.delete(`/account/keys/${id}`)).status, 204)
  await eventually(() => sockets[0]!.timeout === service.config.SLOW_READER_MS, 20_000)
})

t.test('a stream is sent what was committed while it began to follow', async (t) => {
  const service = await startApp(t)
  const store = await service.openAccount()
  let isFirst = true
  const streams = createEventStreams(async (query, input) => {
    const row = await service.app.read(query, input)
    if ('after' in input && isFirst) {
      isFirst = false
      await store.post('/categories', { name: 'Dogs' })
    }
    return row
  }, service.app.log, { keyCheckMs: 3_600_000, pollMs: 3_600_000 })
  t.teardown(streams.close)
  let text = ''
  streams.follow(await credentialOf(store), 0, () => 0).on('data', (bytes: Buffer) => { text += bytes.toString() })
  await eventually(() => text.includes('id: 1\n'))
  t.match(text, /^id: 1$/m)
})

t.test('a stream does not wait for requests that were deleted', async (t) => {
  const service = await startApp(t)
  const store = await service.openAccount()
  const credential = await credentialOf(store)
  await store.request('PUT', '/lab/journal', { body: { keep: 10 } })
  await store.get('/pets?limit=1')
  await store.get('/lab/requests')
  let reads = 0
  const { read } = service.app
  const counted = (async (...parameters) => {
    reads++
    return await read(...parameters)
  }) as Read
  const streams = createEventStreams(counted, service.app.log, { pollMs: 3_600_000 }, undefined, streamRequests)
  t.teardown(streams.close)
  await store.delete('/lab/requests')
  const texts = ['', '']
  for (const i of texts.keys()) {
    const before = reads
    streams.follow(credential, 0, () => 0).on('data', (bytes: Buffer) => { texts[i] += bytes.toString() })
    await eventually(() => reads > before)
    await sleep(200)
    t.ok(reads - before < 10, `${reads - before} reads`)
  }
  await store.get('/pets?limit=2')
  const [{ id }] = (await store.get('/lab/requests')).body
  streams.wake(credential.account)
  await eventually(() => texts.every((text) => text.includes(`id: ${id}\n`)))
})

t.test('a stream stays open after a failed read, and the read is repeated', async (t) => {
  const service = await startApp(t)
  const store = await service.openAccount()
  let broken = false
  let reads = 0
  const streams = createEventStreams(async (query, input) => {
    if (broken) throw new Error('the database is unreachable')
    const found = await service.app.read(query, input)
    reads++
    return found
  }, service.app.log)
  t.teardown(streams.close)
  const holder = await credentialOf(store)
  let text = ''
  const stream = streams.follow(holder, 0, () => 0)
  let ended = false
  stream.on('data', (bytes: Buffer) => { text += bytes.toString() }).on('close', () => { ended = true })
  // A stream whose first read fails ends.
  await eventually(() => text === ':\n' && reads > 0)
  broken = true
  await store.post('/categories', { name: 'Dogs' })
  streams.wake(store.account!)
  await sleep(50)
  t.equal(ended, false)
  broken = false
  streams.wake(store.account!)
  await eventually(() => text.includes('id: 1\n'))
  t.equal(ended, false)
})

t.test('more accounts can be followed than reads may wait', { timeout: 300_000 }, async (t) => {
  const service = await startApp(t, { QUEUE_LIMIT: '60', REQUEST_TIMEOUT_MS: '60000' })
  const stores: Client[] = []
  while (stores.length < 150) {
    // Sign-ups have a quarter of the queue.
    stores.push(...await Promise.all(Array.from({ length: 15 }, async () => await service.openAccount())))
  }
  const last = stores[149]!
  const { body: second } = await last.post('/account/keys', {})
  const streams: Stream[] = []
  for (const store of stores) streams.push(await openStream(service, store === last ? { key: second.apiKey } : store))
  // An event that came says that a stream needs no more reads of its own, which could exceed the limit, too.
  const watched = stores.slice(0, 30).map((store, i) => ({ store, stream: streams[i]! }))
  for (const { store, stream } of watched) {
    await store.post('/categories', { name: 'Cats' })
    await stream.until(1)
  }
  let ended = 0
  for (const stream of streams) stream.ended.then(() => { ended++ }, () => {})
  t.equal((await last.delete(`/account/keys/${second.id}`)).status, 204)
  await eventually(() => ended > 0)
  // Until after the next poll and the next check of the keys.
  await sleep(6_500)
  t.equal(ended, 1, 'only the stream of the revoked key')
  await Promise.all(watched.map(async ({ store }) => await store.post('/categories', { name: 'Dogs' })))
  for (const { stream } of watched) await stream.until(2)
  for (const stream of streams) stream.close()
})

t.test('a client that keeps up receives everything, however much happens at once', { timeout: 300_000 }, async (t) => {
  const service = await startApp(t)
  const store = await service.openAccount()
  const stream = await openStream(service, store)
  const message = '漢'.repeat(10_000)
  // Some 12 MB, 200 at a time in one transaction.
  for (let i = 0; i < 2; i++) {
    await Promise.all(Array.from({ length: 200 }, async () => await store.post('/messages', { message })))
  }
  await stream.until(400)
  t.same(stream.events.map(({ id }) => id), Array.from({ length: 400 }, (_, i) => i + 1))
  stream.close()

  // A client that follows later and reads slowly receives everything, too.
  const late = await openStream(service, store)
  for (let i = 0; i < 20; i++) {
    late.pause()
    await sleep(50)
    late.resume()
    await sleep(5)
  }
  await late.until(400)
  t.same(late.events.map(({ id }) => id), Array.from({ length: 400 }, (_, i) => i + 1))
  late.close()
})

t.test('an idle stream is sent a comment at each heartbeat, every 15 s by default', async (t) => {
  t.equal(STREAM_TIMINGS.heartbeatMs, 15_000)
  const service = await startApp(t)
  const credential = await credentialOf(await service.openAccount())
  const streams = createEventStreams(service.app.read, service.app.log, { tickMs: 50, heartbeatMs: 600 })
  t.teardown(streams.close)
  const startedAt = performance.now()
  const stream = streams.follow(credential, 0, () => 0)
  let comments = 0
  stream.on('data', (bytes: Buffer) => {
    t.equal(bytes.toString(), ':\n')
    comments++
  })
  await eventually(() => comments >= 4)
  // The first comment begins the stream. A busy process reads a comment late, but the service sends none early.
  const duration = performance.now() - startedAt
  t.ok(duration > 3 * 500, `3 heartbeats within ${duration} ms`)
})

t.test('an idle stream is sent comments although the clock of the machine is set back', async (t) => {
  const service = await startApp(t)
  const credential = await credentialOf(await service.openAccount())
  const streams = createEventStreams(service.app.read, service.app.log, { tickMs: 20, heartbeatMs: 60 })
  t.teardown(streams.close)
  let comments = 0
  streams.follow(credential, 0, () => 0).on('data', () => { comments++ })
  await eventually(() => comments >= 2)
  setClockBack(t)
  const before = comments
  await eventually(() => comments >= before + 2)
  t.ok(comments >= before + 2)
})

t.test('a stream that drains is destroyed when its client reads nothing, after 60 s by default', async (t) => {
  t.equal(STREAM_TIMINGS.stalledMs, 60_000)
  const service = await startApp(t)
  const store = await service.openAccount()
  const message = '漢'.repeat(10_000)
  // More than one chunk, so that the follower has to catch up.
  await Promise.all(Array.from({ length: 30 }, async () => await store.post('/messages', { message })))
  const streams = createEventStreams(service.app.read, service.app.log, { tickMs: 100, stalledMs: 500 })
  t.teardown(streams.close)
  const stream = streams.follow(await credentialOf(store), 0, () => 0)
  const startedAt = performance.now()
  await once(stream, 'close')
  t.ok(stream.destroyed && !stream.readableEnded)
  t.ok(performance.now() - startedAt >= 500, `after ${performance.now() - startedAt} ms`)
})
