// Only on SQLite: opens connections; no statement decides what happens to them.

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startApp, type TestApp } from '../support/app.ts'
import { holdWrites } from '../support/groups.ts'
import { eventually } from '../support/receiver.ts'

// With HOST=localhost, clients reach the service at both loopback addresses, with the same limits at both.

/** Far longer than a grace period: a machine is never so slow. */
const LATE_MS = 60_000

const ADDRESSES = await canListen('::1') ? ['127.0.0.1', '::1'] : ['127.0.0.1']

async function canListen (host: string): Promise<boolean> {
  const server = createServer().listen(0, host)
  try {
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}

const start = async (t: Test, settings: Record<string, string> = {}): Promise<TestApp> =>
  await startApp(t, { HOST: 'localhost', ...settings })

interface Peer { socket: Socket, text: () => string }

/** Opens a connection to an address and sends bytes. */
async function open (t: Test, port: number, address: string, bytes = ''): Promise<Peer> {
  const socket = await connected(port, address)
  let text = ''
  socket.setEncoding('latin1').on('error', () => {}).on('data', (chunk: string) => { text += chunk })
  t.teardown(() => { socket.destroy() })
  socket.write(bytes)
  return { socket, text: () => text }
}

/** Connects as soon as the service listens: `app.listen()` waits for one of the addresses. */
async function connected (port: number, address: string): Promise<Socket> {
  for (let attempt = 0; ; attempt++) {
    const socket = connect(port, address)
    try {
      await once(socket, 'connect')
      return socket
    } catch (error) {
      if (attempt === 20) throw error
      await sleep(50)
    }
  }
}

async function exchange (t: Test, port: number, address: string, bytes: string): Promise<string> {
  const { socket, text } = await open(t, port, address, bytes)
  if (!socket.closed) await once(socket, 'close')
  return text()
}

const CLOSE = 'Host: x\r\nConnection: close\r\n'

t.test('the service is reachable at both addresses', async (t) => {
  const { port } = await start(t)
  for (const address of ADDRESSES) {
    t.match(await exchange(t, port, address, `GET /livez HTTP/1.1\r\n${CLOSE}\r\n`), /^HTTP\/1\.1 200 /, address)
  }
})

t.test('bytes that are not HTTP get the same error at both addresses', async (t) => {
  const { port } = await start(t)
  for (const address of ADDRESSES) {
    t.match(await exchange(t, port, address, '{}\r\n\r\n'), /^HTTP\/1\.1 400 .*"code":"bad_request"/s, address)
  }
})

t.test('a head has at most 200 fields at both addresses', async (t) => {
  const { port } = await start(t)
  for (const address of ADDRESSES) {
    const text = await exchange(t, port, address, `GET /livez HTTP/1.1\r\n${CLOSE}${'A: x\r\n'.repeat(199)}\r\n`)
    t.match(text, /^HTTP\/1\.1 431 /, address)
  }
})

t.test('CONNECT is refused, and an unknown expectation is ignored, at both addresses', async (t) => {
  const { port } = await start(t)
  for (const address of ADDRESSES) {
    const connect = await exchange(t, port, address, 'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n')
    t.match(connect, /^HTTP\/1\.1 400 .*"code":"bad_request"/s, address)
    const expect = await exchange(t, port, address, `GET /livez HTTP/1.1\r\nExpect: a-pony\r\n${CLOSE}\r\n`)
    t.match(expect, /^HTTP\/1\.1 200 /, address)
  }
})

t.test('a request that arrives too slowly gets 408 at both addresses', async (t) => {
  const { port } = await start(t, { REQUEST_TIMEOUT_MS: '300' })
  for (const address of ADDRESSES) {
    t.match(await exchange(t, port, address, 'GET /livez HTT'), /^HTTP\/1\.1 408 .*"code":"request_timeout"/s, address)
  }
})

t.test('a client that takes nothing is disconnected at both addresses', { timeout: 300_000 }, async (t) => {
  const { openAccount, port } = await start(t, { SLOW_READER_MS: '500' })
  const ada = await openAccount()
  const message = '😀'.repeat(10_000)
  await Promise.all(Array.from({ length: 30 }, async () => await ada.post('/messages', { message })))
  const request = `GET /messages?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ada.key}\r\n\r\n`
  const peers = await Promise.all(ADDRESSES.map(async (address) => await open(t, port, address)))
  // More than the buffers of the system take.
  for (const { socket } of peers) socket.pause().write(request.repeat(40))
  // A socket that reads nothing notices the end when it writes.
  for (const [i, { socket }] of peers.entries()) {
    while (!socket.destroyed) {
      socket.write('\r\n')
      await sleep(50)
    }
    t.pass(`${ADDRESSES[i]} is disconnected`)
  }
})

for (const address of ADDRESSES) {
  const post = (key: string | undefined): string => {
    const body = '{"message":"Hello"}'
    return `POST /messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`
  }

  t.test(`the stop waits for a request in flight at ${address}`, { timeout: 300_000 }, async (t) => {
    const { app, openAccount, port } = await start(t, { SHUTDOWN_GRACE_MS: String(LATE_MS) })
    const { key } = await openAccount()
    const idle = await open(t, port, address, 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
    await eventually(() => idle.text().includes('ok'))
    const release = await holdWrites(app)
    t.teardown(release)
    const { socket, text } = await open(t, port, address, post(key))
    await sleep(200)
    let isClosed = false
    const end = app.close().then(() => { isClosed = true })
    if (!idle.socket.closed) await once(idle.socket, 'close')
    await t.rejects(connected(port, address), { code: 'ECONNREFUSED' })
    t.notOk(isClosed, 'the service has not stopped')
    release()
    await once(socket, 'close')
    t.match(text(), /^HTTP\/1\.1 201 /)
    await end
  })

  t.test(`a request at ${address} that takes longer than SHUTDOWN_GRACE_MS is disconnected`, { timeout: 300_000 }, async (t) => {
    const { app, openAccount, port } = await start(t, { SHUTDOWN_GRACE_MS: '1000', REQUEST_TIMEOUT_MS: '600000' })
    const { key } = await openAccount()
    const release = await holdWrites(app)
    t.teardown(release)
    const { socket, text } = await open(t, port, address, post(key))
    await sleep(200)
    const end = app.close()
    const outcome = once(socket, 'close').then(() => 'disconnected')
    t.equal(await Promise.race([outcome, sleep(LATE_MS, 'late', { ref: false })]), 'disconnected')
    t.equal(text(), '')
    release()
    await end
  })
}

t.test('a service that drains answers once more on each open connection, and takes no new one', async (t) => {
  const { app, port } = await start(t)
  const request = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'
  const peers = await Promise.all(ADDRESSES.map(async (address) => await open(t, port, address, request)))
  for (const { text } of peers) await eventually(() => text().endsWith('{"status":"ok"}'))
  const drained = app.drain(LATE_MS)
  for (const address of ADDRESSES) {
    await t.rejects(once(connect(port, address), 'connect'), { code: 'ECONNREFUSED' }, address)
  }
  for (const { socket, text } of peers) {
    const closed = once(socket, 'close')
    socket.write(request)
    await closed
    t.match(text(), /status":"ok"\}HTTP\/1\.1 200 OK\r\n[^]*connection: close\r\n[^]*status":"ok"\}$/i)
  }
  await drained
})
