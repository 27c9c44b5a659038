// Only on SQLite: sends requests that reach no handler, or whose body is ignored.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { eventually } from '../support/receiver.ts'
import { sendBytes } from '../support/socket.ts'

// Bodies that arrive after the response, and bodies in many small chunks.

const MB = 1_048_576

const { app, port, openAccount } = await startApp(t)
const { key } = await openAccount()
const HEAD = `Host: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`
const STRANGER = 'Host: x\r\nContent-Type: application/json\r\n'

/** The server's sockets by the ports of their clients. */
const accepted = new Map<number, Socket>()
app.server.on('connection', (socket: Socket) => { accepted.set(socket.remotePort!, socket) })

interface Peer { socket: Socket, text: () => string, server: Socket }

/** Opens a connection that the client does not end by itself. */
async function open (): Promise<Peer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  t.teardown(() => { socket.destroy() })
  let text = ''
  socket.setEncoding('latin1').on('error', () => {}).on('data', (chunk: string) => { text += chunk })
  await once(socket, 'connect')
  await eventually(() => accepted.has(socket.localPort!))
  return { socket, text: () => text, server: accepted.get(socket.localPort!)! }
}

t.test('a response to an incomplete request ends the connection', async (t) => {
  const endless = [
    [404, `POST /nothing HTTP/1.1\r\n${STRANGER}Content-Length: 20\r\n\r\n{`],
    [401, `POST /pets HTTP/1.1\r\n${STRANGER}Content-Length: 20\r\n\r\n{`],
    [401, `POST /pets HTTP/1.1\r\n${STRANGER}Transfer-Encoding: chunked\r\n\r\n1\r\n{`],
    [400, `POST /pets HTTP/1.1\r\n${HEAD.replace('json', 'xml')}Content-Length: 20\r\n\r\n{`],
    [405, `PUT /pets HTTP/1.1\r\n${STRANGER}Content-Length: 20\r\n\r\n{`],
    [413, `POST /pets HTTP/1.1\r\n${HEAD}Content-Length: 2000000\r\n\r\n{`],
    [404, `DELETE /pets/1 HTTP/1.1\r\n${HEAD}Content-Length: 20\r\n\r\n{`],
    [200, `GET /pets HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{`],
    [200, `GET /livez HTTP/1.1\r\n${HEAD}Content-Length: 20\r\n\r\n{`]
  ] as const
  await Promise.all(endless.map(async ([status, bytes]) => {
    const { socket, text, server } = await open()
    socket.write(bytes)
    if (!server.closed) await once(server, 'close')
    t.match(text(), new RegExp(`^HTTP/1\\.1 ${status} [^]*^connection: close\r$`, 'im'), bytes.slice(0, 60))
    t.equal(text().split('HTTP/1.1').length, 2, 'there is one response')
  }))
})

t.test('a response to a complete request leaves the connection open', async (t) => {
  const { socket, text } = await open()
  const requests = [
    `POST /pets HTTP/1.1\r\n${STRANGER}Content-Length: 2\r\n\r\n{}`,
    `POST /pets HTTP/1.1\r\n${STRANGER}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    `DELETE /pets/1 HTTP/1.1\r\n${HEAD}Content-Length: 2\r\n\r\n{}`
  ]
  for (const [i, bytes] of requests.entries()) {
    socket.write(bytes)
    while (text().split('HTTP/1.1').length < i + 2) await once(socket, 'data')
  }
  t.same(text().match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 401', 'HTTP/1.1 401', 'HTTP/1.1 404'])
  t.notMatch(text(), /^connection: close/im)
})

t.test('the service reads little of what comes after the response', async (t) => {
  for (const head of [
    `POST /pets HTTP/1.1\r\n${STRANGER}Content-Length: 999999999\r\n\r\n`,
    `POST /messages HTTP/1.1\r\n${HEAD}Content-Length: 999999999\r\n\r\n`,
    'not HTTP\r\n\r\n'
  ]) {
    const { socket, server } = await open()
    socket.write(head + 'x'.repeat(16 * MB))
    await once(server, 'close')
    // What it reads at once has 64 KB: with the head, at the limit, and beyond.
    t.ok(server.bytesRead <= 4 * 65_536, `${server.bytesRead} bytes`)
  }
})

t.test('a client that sends 2 MB before it reads gets the 413', async (t) => {
  const { socket, text } = await open()
  socket.pause()
  const failures: Error[] = []
  socket.on('error', (error) => { failures.push(error) })
  socket.write(`POST /messages HTTP/1.1\r\n${HEAD}Content-Length: ${2 * MB}\r\n\r\n`)
  const sent = new Promise((resolve) => { socket.write('x'.repeat(2 * MB), resolve) })
  // It goes on after the service has answered.
  await sent
  socket.resume()
  await once(socket, 'end')
  t.same(failures, [])
  t.match(text(), /^HTTP\/1\.1 413 [^]*"payload_too_large"/)
})

const chunkOf = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

/** Sends a message in chunks of one size. Only the last chunk can be larger. */
async function sendChunks (count: number, size: number): Promise<{ status: number | undefined, text: string }> {
  const message = chunkOf('{"message":"Hello"}'.padEnd(size))
  const body = `${chunkOf(' '.repeat(size)).repeat(count - 1)}${message}${chunkOf('')}`
  const answer = await sendBytes(port, `POST /messages HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n${body}`)
  return { status: answer?.status, text: String(answer?.text) }
}

t.test('a body in more than 1,024 chunks of less than 64 bytes on average is refused', async (t) => {
  for (const [count, size, status] of [[1_024, 1, 201], [1_025, 1, 400], [1_500, 66, 201], [1_500, 62, 400]] as const) {
    const answer = await sendChunks(count, size)
    t.equal(answer.status, status, `${count} chunks of ${size}: ${answer.text}`)
    if (status === 400) t.match(answer.text, /"code":"bad_request".*more than 1024 chunks.*less than 64 bytes/)
  }
  const bytes = `POST /messages HTTP/1.1\r\n${HEAD}Content-Length: 2019\r\n\r\n${' '.repeat(2_000)}{"message":"Hello"}`
  t.match(await sendBytes(port, ...bytes), { status: 201 }, 'what arrives in small packets is no chunk')
})

t.test('endless chunks are answered once, and their connection stays open, unread', async (t) => {
  const heads = [
    `POST /messages HTTP/1.1\r\n${HEAD}`, `DELETE /pets/1 HTTP/1.1\r\n${HEAD}`, `POST /pets HTTP/1.1\r\n${STRANGER}`
  ]
  const peers = await Promise.all(heads.map(async (head) => {
    const peer = await open()
    const ended = once(peer.socket, 'end')
    peer.socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(200_000)}`)
    await ended
    return peer
  }))
  // Other connections close after a second.
  await sleep(1_500)
  for (const { text, server } of peers) {
    t.match(text(), /^HTTP\/1\.1 4\d\d [^]*^connection: close\r$/im)
    t.equal(text().split('HTTP/1.1').length, 2)
    t.notOk(server.closed)
    t.ok(server.bytesRead <= 4 * 65_536, `${server.bytesRead} bytes`)
  }
  await app.close()
  t.ok(peers.every(({ server }) => server.closed), 'the end of the service closes them')
})
