// Only on SQLite: opens connections to a service without a database.

import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { createLogger } from '../../src/monitoring/logger.ts'
import { serverFactory } from '../../src/plugins/connections.ts'
import { gracefulShutdown } from '../../src/plugins/graceful-shutdown.ts'
import { startApp } from '../support/app.ts'
import { eventually } from '../support/receiver.ts'

// What one connection can cost, seen by clients that pipeline requests, do not read, or do not finish their requests.

type Options = Parameters<typeof serverFactory>[0]

/** More than the system buffers for a connection. */
const LARGE_BYTES = 16_777_216

interface TestService {
  port: number
  close: () => Promise<void>
  /** The paths of the requests that were handled, in order. */
  handled: string[]
  /** The greatest number of requests that were handled at once. */
  mostAtOnce: () => number
  /** Answers the requests to /held. */
  release: () => void
  /** Whether the service closed the connection of a client's port. A client that does not read cannot see it. */
  hasClosed: (port: number | undefined) => boolean
  /** Whether the service reads from the connection of a client's port. */
  isReading: (port: number | undefined) => boolean
}

/** Starts a service whose GET /large is larger than all buffers, GET /slow/:ms takes its time, and GET /held waits. */
async function startService (t: Test, options: Partial<Options> = {}): Promise<TestService> {
  const { SLOW_READER_MS = 60_000, REQUEST_TIMEOUT_MS = 60_000, limits } = options
  const app = Fastify({
    serverFactory: serverFactory({
      REQUEST_TIMEOUT_MS, SLOW_READER_MS, limits: { unsentBytes: 100_000_000, ...limits }
    }, createLogger({ LOG_LEVEL: 'silent' }))
  })
  await app.register(gracefulShutdown, { SHUTDOWN_GRACE_MS: 600_000 })
  const handled: string[] = []
  let atOnce = 0
  let most = 0
  const sockets = new Map<number | undefined, Socket>()
  app.server.on('connection', (socket: Socket) => { sockets.set(socket.remotePort, socket) })
  app.addHook('onRequest', async ({ url }) => {
    handled.push(url)
    most = Math.max(most, ++atOnce)
  })
  app.addHook('onResponse', async () => { atOnce-- })
  app.get('/large', async () => Buffer.alloc(LARGE_BYTES))
  app.get('/slow/:ms', async (request) => {
    const { ms } = request.params as { ms: string }
    await sleep(Number(ms))
    return 'done'
  })
  let release = (): void => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  app.get('/held', async () => {
    await released
    return 'done'
  })
  app.post('/upload', { bodyLimit: LARGE_BYTES }, async ({ body }) => String((body as string).length))
  app.get('/last', async (_request, reply) => { await reply.header('connection', 'close').send('bye') })
  app.get('/stream', (request, reply) => {
    request.raw.socket.setTimeout(0)
    reply.raw.writeHead(200, { 'content-type': 'text/event-stream' }).write(Buffer.alloc(LARGE_BYTES))
    reply.hijack()
  })
  t.teardown(async () => {
    app.server.closeAllConnections()
    await app.close()
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return {
    port,
    close: async () => { await app.close() },
    handled,
    mostAtOnce: () => most,
    release,
    hasClosed: (port) => sockets.get(port)?.destroyed === true,
    isReading: (port) => sockets.get(port)?.isPaused() === false
  }
}

interface Peer {
  socket: Socket
  closed: () => boolean
  text: () => string
}

/** Opens a connection that sends requests and does not read until it is resumed. */
async function open (t: Test, { port, hasClosed }: TestService, paths: string[]): Promise<Peer> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('error', () => {})
  socket.on('data', (chunk) => { text += chunk.toString('latin1') }).pause()
  t.teardown(() => { socket.destroy() })
  await once(socket, 'connect')
  // A socket forgets its port when it is closed.
  const { localPort } = socket
  socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
  return { socket, closed: () => hasClosed(localPort), text: () => text }
}

t.test('pipelined requests are handled one after the other, and answered in order', async (t) => {
  const service = await startService(t)
  const { handled, mostAtOnce } = service
  const paths = Array.from({ length: 100 }, (_, i) => `/slow/${i % 3}?${i}`)
  const { socket, text } = await open(t, service, paths)
  socket.resume()
  await eventually(() => text().split('HTTP/1.1 200').length === 101)
  t.same(handled, paths)
  t.equal(mostAtOnce(), 1)
  socket.write('GET /slow/0?after HTTP/1.1\r\nHost: x\r\n\r\n')
  await eventually(() => handled.at(-1) === '/slow/0?after')
  t.pass('the connection is read again')
})

t.test('a client that does not read gets no further request handled', async (t) => {
  const service = await startService(t)
  const { handled } = service
  const { socket, text } = await open(t, service, ['/large', ...Array(100).fill('/slow/0')])
  await eventually(() => handled.length > 0)
  await sleep(300)
  t.same(handled, ['/large'])
  socket.resume()
  await eventually(() => handled.length === 101)
  await eventually(() => text().split('HTTP/1.1 200').length === 102)
  t.ok(text().length > LARGE_BYTES, 'it gets every response when it reads')
})

t.test('requests after a response that ends the connection are not handled', async (t) => {
  const service = await startService(t)
  const { handled } = service
  const { socket, closed } = await open(t, service, ['/last', '/slow/0'])
  socket.resume()
  await eventually(closed)
  t.same(handled, ['/last'])
})

t.test('a client that disconnects gets no further request handled', async (t) => {
  const service = await startService(t)
  const { handled, release } = service
  const { socket, closed } = await open(t, service, ['/held', '/slow/0'])
  await eventually(() => handled.length > 0)
  socket.resetAndDestroy()
  await eventually(closed)
  release()
  await sleep(200)
  t.same(handled, ['/held'])
})

t.test('a client that takes nothing is disconnected after SLOW_READER_MS, not a multiple of it', async (t) => {
  const service = await startService(t, { SLOW_READER_MS: 1_000 })
  const { closed } = await open(t, service, ['/large'])
  await eventually(() => service.handled.length > 0)
  let isLate = false
  const late = setTimeout(() => { isLate = !closed() }, 1_900)
  await eventually(closed)
  clearTimeout(late)
  t.notOk(isLate)
})

t.test('a stop waits for clients that read, but not for those that send nothing or do not read', async (t) => {
  const service = await startService(t)
  const silent = await open(t, service, [])
  const stalled = await open(t, service, ['/large'])
  const reader = await open(t, service, ['/large?2'])
  await eventually(() => service.handled.length === 2)
  const stopped = service.close()
  await eventually(silent.closed)
  t.notOk(stalled.closed() || reader.closed(), 'the one that sends nothing is closed first')
  reader.socket.resume()
  await stopped
  await eventually(() => reader.socket.closed)
  t.ok(reader.text().length > LARGE_BYTES, 'the other gets its whole response')
  t.ok(stalled.closed())
})

t.test('SLOW_READER_MS does not end requests that wait, readers that continue, or event streams', async (t) => {
  const service = await startService(t, { SLOW_READER_MS: 6_000 })
  const waiting = await open(t, service, ['/slow/7000'])
  const stream = await open(t, service, ['/stream'])
  const reader = await open(t, service, ['/large'])
  waiting.socket.resume()
  for (let i = 0; i < 9; i++) {
    await sleep(800)
    // The system takes more from the service once a third of its buffer of at most 4 MB is free.
    const before = reader.socket.bytesRead
    reader.socket.resume()
    while (reader.socket.bytesRead < before + 1_600_000) await once(reader.socket, 'data')
    reader.socket.pause()
  }
  await eventually(() => /200 OK[^]*done/.test(waiting.text()))
  t.notOk(reader.closed())
  t.notOk(stream.closed())
})

t.test('a client with too many unsent bytes is disconnected', async (t) => {
  const service = await startService(t, { limits: { unsentBytes: 1_000_000 } })
  const { closed } = await open(t, service, ['/large'])
  await eventually(closed)
  t.pass()
})

t.test('when all clients have too many unsent bytes, the one with the most is disconnected', async (t) => {
  const service = await startService(t, { limits: { totalUnsentBytes: 30_000_000, unsentBytes: 100_000_000 } })
  const first = await open(t, service, ['/large'])
  await sleep(300)
  t.notOk(first.closed(), 'one such client is within the limit')
  const others = [await open(t, service, ['/large']), await open(t, service, ['/slow/0'])]
  const [second, polite] = others as [Peer, Peer]
  await eventually(() => first.closed() || second.closed())
  await sleep(300)
  t.equal([first, second].filter(({ closed }) => closed()).length, 1, 'one disconnection is enough')
  polite.socket.resume()
  await eventually(() => polite.text().includes('done'))
  t.notOk(polite.closed())
})

/** Begins a POST with a body. */
async function post (t: Test, service: TestService, length: number, sent: number): Promise<Peer> {
  const peer = await open(t, service, [])
  peer.socket.resume()
  peer.socket.write(`POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n`)
  peer.socket.write('x'.repeat(sent))
  return peer
}

t.test('when all unfinished bodies are too large together, the largest is read no further', async (t) => {
  const service = await startService(t, { limits: { totalUnfinishedBytes: 1_500_000 } })
  const isReading = ({ socket }: Peer): boolean => service.isReading(socket.localPort)
  for (let i = 0; i < 3; i++) {
    const finished = await post(t, service, 900_000, 900_000)
    await eventually(() => finished.text().includes('900000'))
  }
  const small = await post(t, service, 500_000, 400_000)
  const large = await post(t, service, 900_000, 800_000)
  // Its memory is more than its bytes.
  const chunked = await open(t, service, [])
  chunked.socket.write('POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n')
  chunked.socket.write('Transfer-Encoding: chunked\r\n\r\n')
  chunked.socket.write('1\r\nx\r\n'.repeat(1_024))
  const further = await post(t, service, 700_000, 600_000)
  await eventually(() => !isReading(large))
  t.ok([small, further, chunked].every(isReading), 'one is enough')
  large.socket.write('x'.repeat(100_000))
  for (const { socket } of [small, further]) socket.write('x'.repeat(100_000))
  await eventually(() => small.text().includes('500000') && further.text().includes('700000'))
  const next = await post(t, service, 1_100_000, 1_100_000)
  await eventually(() => next.text().includes('1100000'))
  t.same([large.text(), large.closed()], ['', false])
})

t.test('bodies that are answered before they are complete count until their connections close', async (t) => {
  const service = await startService(t, { limits: { totalUnfinishedBytes: 1_500_000 } })
  for (let round = 0; round < 4; round++) {
    await Promise.all(Array.from({ length: 10 }, async () => {
      const { socket, closed, text } = await open(t, service, [])
      socket.resume()
      socket.write('POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: image/png\r\nContent-Length: 900000\r\n\r\n')
      socket.write('x'.repeat(60_000))
      await eventually(() => text().startsWith('HTTP/1.1 415'))
      socket.destroy()
      await eventually(closed)
    }))
  }
  const next = await post(t, service, 1_100_000, 1_100_000)
  await eventually(() => next.text().includes('1100000'))
  t.pass()
})

t.test('a request that is read no further ends with its time-out', async (t) => {
  const service = await startService(t, { limits: { totalUnfinishedBytes: 100_000 }, REQUEST_TIMEOUT_MS: 500 })
  const large = await post(t, service, 900_000, 200_000)
  await eventually(large.closed)
  t.pass()
})

t.test('a closed connection gives back its share of the requests that wait', async (t) => {
  const service = await startService(t, { limits: { waiting: 50 } })
  for (let i = 0; i < 3; i++) {
    const flood = await open(t, service, ['/held', ...Array(40).fill('/slow/0')])
    await eventually(() => service.handled.length > i)
    flood.socket.resetAndDestroy()
    await eventually(flood.closed)
  }
  const polite = await open(t, service, Array(20).fill('/slow/0'))
  polite.socket.resume()
  await eventually(() => polite.closed() || polite.text().split('done').length === 21)
  t.notOk(polite.closed())
})

t.test('the number of pipelined requests that wait is limited', async (t) => {
  const service = await startService(t, { limits: { waiting: 50 } })
  const polite = await open(t, service, Array(20).fill('/slow/20'))
  polite.socket.resume()
  const flood = await open(t, service, Array(100).fill('/slow/1000'))
  await eventually(flood.closed)
  await eventually(() => polite.text().split('done').length === 21)
  t.notOk(polite.closed())
})

t.test('a connection that was closed for its requests that wait gives back its share at once', async (t) => {
  const service = await startService(t, { limits: { waiting: 50 } })
  const flood = await open(t, service, Array(46).fill('/held'))
  await eventually(() => service.handled.length === 1)
  const polite = await open(t, service, Array(49).fill('/slow/0'))
  polite.socket.resume()
  await eventually(flood.closed)
  await eventually(() => polite.closed() || polite.text().split('done').length === 50)
  t.notOk(polite.closed())
})

t.test('the service takes SLOW_READER_MS from its settings', { timeout: 300_000 }, async (t) => {
  const { app, openAccount, port } = await startApp(t, { SLOW_READER_MS: '500' })
  const ada = await openAccount()
  const message = '😀'.repeat(10_000)
  await Promise.all(Array.from({ length: 30 }, async () => await ada.post('/messages', { message })))
  const accepted = once(app.server, 'connection') as Promise<[Socket]>
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => { socket.destroy() })
  const request = `GET /messages?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ada.key}\r\n\r\n`
  // More than the buffers of the system take.
  socket.pause().write(request.repeat(40))
  const [connection] = await accepted
  await eventually(() => connection.destroyed)
  // A paused socket notices the end when it reads again.
  let bytes = 0
  socket.on('error', () => {}).on('data', (chunk: Buffer) => { bytes += chunk.length }).resume()
  await once(socket, 'close')
  t.ok(bytes < 30_000_000, `${bytes} bytes of 40 pages of 1 MB`)
})
