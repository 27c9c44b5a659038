import { setImmediate } from 'node:timers/promises'
import { finished } from 'node:stream/promises'
import type { Socket } from 'node:net'
import t from 'tap'
import { createEventStreams } from '../../src/events/event-stream.ts'
import { EventStream, send, type Follower } from '../../src/events/followers.ts'
import { RESERVED_BYTES } from '../../src/lab/held-bytes.ts'
import { changeStream } from '../../src/lab/streams.ts'
import type { Document } from '../../src/openapi/document.ts'
import { startApp, type Client } from '../support/app.ts'
import { newCategory } from '../support/fixtures.ts'
import { eventually } from '../support/receiver.ts'
import { openStream } from '../support/stream.ts'
import { newFault } from './fixture.ts'
import { eventTypes } from './receive.ts'

const context = { socket: {} as Socket, writeEvent: async () => {}, reserve: () => () => {} }

const SLOW = [{ type: 'delay', ms: 60_000 }, { type: 'trickle', bytesPerSecond: 1 }] as const

t.test('a slow stream takes no more from the feed than it may hold back', async (t) => {
  for (const effect of SLOW) {
    const source = new EventStream({ read () {} })
    const slow = changeStream(source, effect, context)!.resume()
    const chunk = Buffer.alloc(60_000, 'x')
    // A slow stream may take at once what waits already.
    for (let part = 0; part < 2; part++) {
      for (let i = 0; i < 10; i++) source.push(chunk)
      for (let turn = 0; turn < 20; turn++) await setImmediate()
    }
    const { readableLength } = source
    t.ok(readableLength >= 7 * chunk.length, `${effect.type}: ${readableLength} bytes wait in the feed`)
    slow.destroy()
    await finished(source).catch(() => {})
  }
})

t.test('a slow stream is disconnected before it holds back more than is reserved for it', async (t) => {
  const chunk = Buffer.alloc(30_000, 'x')
  for (const effect of SLOW) {
    const source = new EventStream({ read () {} })
    const slow = changeStream(source, effect, context)!.on('error', () => {}).resume()
    t.teardown(() => { slow.destroy() })
    const follower = { stream: source, unsentBytes: () => 0, onUnsubscribe () {} } as unknown as Follower
    let held = 0
    while (!source.destroyed && held <= 2 * RESERVED_BYTES) {
      send(follower, chunk)
      held += chunk.length
      for (let turn = 0; turn < 5; turn++) await setImmediate()
    }
    t.ok(held <= RESERVED_BYTES, `${effect.type}: ${held} bytes`)
  }
})

t.test('faults of event streams', async (t) => {
  const running = await startApp(t)
  const { app, openAccount, withKey } = running

  const hitsOf = async (client: Client): Promise<number> =>
    (await eventTypes(client)).filter((type) => type === 'fault.hit').length

  await t.test('a slow stream ends when its key is revoked', async (t) => {
    for (const effect of SLOW) {
      const ada = await openAccount()
      await newCategory(ada)
      const { body: { id, prefix } } = await ada.post('/account/keys', {})
      const streams = createEventStreams(app.read, app.log, { tickMs: 20, keyCheckMs: 20 })
      t.teardown(streams.close)
      const times = { expiresAt: undefined, accountExpiresAt: undefined, lastUsedAt: undefined }
      const credential = { account: ada.account!, key: id, prefix, readOnly: false, ...times }
      const source = streams.follow(credential, 0, () => 0)
      const slow = changeStream(source, effect, context)!.on('error', () => {}).resume()
      await eventually(() => source.readableFlowing === true || source.readableDidRead)
      await ada.delete(`/account/keys/${id}`)
      await eventually(() => slow.destroyed, 10_000, () => `${effect.type}: still open`)
      t.ok(slow.readableEnded, 'in order')
      t.equal(streams.countOf(ada.account!), 0)
    }
  })

  await t.test('a hit is one event, whatever follows in the stream', async (t) => {
    const ada = await openAccount()
    await newFault(ada, { operation: 'listEvents', effect: { type: 'truncate', bytes: 100 } })
    const cut = await openStream(running, ada)
    await Promise.all(Array.from({ length: 8 }, async () => await newCategory(ada)))
    await cut.ended
    await newCategory(ada)
    t.equal(await hitsOf(ada), 1)
    const resumed = await openStream(running, ada)
    await resumed.until(10)
    t.equal(resumed.headers['petstore-fault'], undefined)
    resumed.close()
    t.equal(await hitsOf(ada), 1)
  })

  await t.test('a client that leaves before its stream is cut was hit, too', async (t) => {
    for (const effect of [{ type: 'reset' }, { type: 'lose_answer' }, { type: 'truncate', bytes: 9 }]) {
      const ada = await openAccount()
      const id = await newFault(ada, { operation: 'listEvents', effect })
      const left = await openStream(running, ada)
      t.equal(left.headers['petstore-fault'], String(id))
      left.close()
      await eventually(async () => await hitsOf(ada) === 1)
    }
  })

  await t.test('each hit of each stream of the document is one event', async (t) => {
    const effects = [
      { type: 'delay', ms: 1 }, { type: 'trickle', bytesPerSecond: 100 }, { type: 'reset' }, { type: 'lose_answer' },
      { type: 'truncate', bytes: 9 }, { type: 'replace_answer', status: 500 }, { type: 'refuse', status: 500 },
      { type: 'corrupt', how: 'invalid_json' }
    ]
    const streams = Object.entries(app.swagger().paths as unknown as Document['paths'])
      .filter(([, { get }]) => get?.responses[200]!.content?.['text/event-stream'] !== undefined)
    t.same(streams.map(([path]) => path).sort(), ['/events', '/lab/requests'])
    for (const [path, { get }] of streams) {
      for (const effect of effects) {
        const ada = await openAccount()
        const id = await newFault(ada, { operation: get!.operationId, effect })
        const hit = await openStream(running, ada, { path })
        t.match(hit.headers['petstore-fault'], String(id))
        hit.close()
        await eventually(async () => await hitsOf(ada) > 0)
        t.equal(await hitsOf(ada), 1, `${path}: ${effect.type}`)
      }
    }
  })

  await t.test('a request for a stream that is refused is one event as well', async (t) => {
    const ada = await openAccount()
    await newFault(ada, { operation: 'listEvents', effect: { type: 'delay', ms: 1 } })
    const refused = await ada.get('/events', { accept: 'text/event-stream', 'last-event-id': 'x' })
    t.equal(refused.status, 400)
    t.equal(await hitsOf(ada), 1)
  })

  await t.test('streams beyond the limit are not slowed down, and say so', async (t) => {
    const ada = await openAccount()
    const { body: { apiKey } } = await ada.post('/account/keys', {})
    const id = await newFault(ada, { operation: 'listEvents', effect: { type: 'delay', ms: 60_000 }, times: 17 })
    const streams = []
    for (let i = 0; i < 17; i++) streams.push(await openStream(running, withKey(apiKey)))
    const fields = streams.map(({ headers }) => headers['petstore-fault'])
    t.same(fields, [...Array(16).fill(String(id)), `${id}; skipped`])
    await newCategory(ada)
    await streams.at(-1)!.until(18)
    for (const { close } of streams) close()
  })
})
