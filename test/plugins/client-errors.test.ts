// Only on SQLite: sends requests that reach no handler.

import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { sendBytes, type RawAnswer } from '../support/socket.ts'

// Bytes that are not a valid request, and requests that arrive too slowly.

const HEAD = 'Host: x\r\nContent-Type: application/json\r\n'

/** Asserts an error in the Error shape, after which the connection ends. */
function refusedBare (
  t: Pick<typeof import('tap').default, 'same' | 'match'>,
  answer: RawAnswer | undefined,
  status: number,
  code: string,
  label: string
): void {
  t.same(
    { status: answer?.status, body: answer?.body },
    { status, body: { code, message: answer?.body?.message, status } },
    label
  )
  t.match(answer?.body?.message, /^[A-Z].*\.$/)
  t.match(answer?.headers, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'request-id': /^[\w-]+$/,
    date: /GMT$/
  })
}

t.test('bytes that are not HTTP are rejected', async (t) => {
  const { port, openAccount } = await startApp(t)
  const { key } = await openAccount()
  for (const bytes of [
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    '\x00\x00\x00\x00',
    'hello\r\n\r\n',
    '{}\r\n\r\n',
    'GET\r\n\r\n',
    'GET /livez HTTP/9.9\r\nHost: x\r\n\r\n',
    'GET /livez HTTP/2.0\r\nHost: x\r\n\r\n',
    'GET /livez HTTP/0.9\r\nHost: x\r\n\r\n',
    'GET /livez\r\nHost: x\r\n\r\n',
    'GET /livez\r\n\r\n',
    'GET livez HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET  HTTP/1.1\r\nHost: x\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'GET /liv\xe9z HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /livez HTTP/1.1\r\nHost x\r\n\r\n',
    'GET /livez HTTP/1.1\r\nHost: x\r\nA\x00: b\r\n\r\n',
    'GET /livez HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n',
    'GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
    'GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n',
    `POST /accounts HTTP/1.1\r\n${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}`,
    `POST /accounts HTTP/1.1\r\n${HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `POST /accounts HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}`,
    `POST /accounts HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\n{}{}{}\r\n`,
    `POST /accounts HTTP/1.1\r\n${HEAD}Transfer-Encoding: gzip\r\n\r\n{}`,
    'GET /livez HTTP/1.1\r\n\r\n',
    'FOO livez\r\n\r\n',
    `${'F'.repeat(100)} /livez HTTP/1.1\r\nHost: x\r\n\r\n`,
    ...['a b', 'a/b', 'a@b', '[::1', 'x:80:80', 'x:http', 'x\r\nHost: x', 'x\r\nhOST: y'].map((host) =>
      `GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
    `POST /messages HTTP/1.1\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`
  ]) {
    const answer = await sendBytes(port, Buffer.from(bytes, 'latin1'))
    refusedBare(t, answer, 400, 'bad_request', JSON.stringify(bytes.slice(0, 60)))
  }
})

t.test('a method that HTTP does not define gets 501', async (t) => {
  const { port } = await startApp(t)
  for (const method of ['FOO', 'get', 'M-SEARCH2']) {
    const answer = await sendBytes(port, `${method} /livez HTTP/1.1\r\nHost: x\r\n\r\n`)
    refusedBare(t, answer, 501, 'not_implemented', method)
    t.match(answer?.body?.message, `"${method}"`)
  }
})

t.test('a transfer coding other than chunked gets 501', async (t) => {
  const { port } = await startApp(t)
  for (const coding of ['gzip, chunked', 'deflate,chunked', 'identity, chunked', 'chunked, chunked']) {
    const answer = await sendBytes(port, `POST /accounts HTTP/1.1\r\n${HEAD}Transfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n`)
    t.ok([400, 501].includes(answer?.status ?? 0), `${coding} ${answer?.text}`)
    if (coding === 'gzip, chunked') refusedBare(t, answer, 501, 'not_implemented', coding)
  }
  const body = '18\r\n{"name":"Ada\'s Animals"}\r\n0\r\n\r\n'
  const answer = await sendBytes(port, `POST /accounts HTTP/1.1\r\n${HEAD}Transfer-Encoding: Chunked\r\n\r\n${body}`)
  t.equal(answer?.status, 201, String(answer?.text))
})

t.test('a request target is a path, an http URL, or the * of OPTIONS', async (t) => {
  const { port } = await startApp(t)
  for (const target of [
    '*', '/livez#', '/livez#x', '/livez?a#b', 'ftp://x/livez', 'http:///livez', 'http://?livez', 'mailto:x'
  ]) {
    const answer = await sendBytes(port, `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
    refusedBare(t, answer, 400, 'bad_request', target)
  }
  for (const target of ['/livez', '/livez?', 'http://x/livez', 'HTTP://x:80/livez?a', 'https://y/livez']) {
    t.match(await sendBytes(port, `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`), { status: 200 }, target)
  }
  const options = await sendBytes(port, 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n')
  t.match(options, { status: 204, headers: { allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' } })
})

/** Sends bytes and waits until the service closes the connection. @returns everything that it sent */
async function receiveAll (port: number, bytes: string, more?: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('error', () => {}).on('data', (chunk: string) => {
    if (text === '' && more !== undefined) socket.write(more)
    text += chunk
  })
  socket.write(bytes)
  await once(socket, 'close')
  return text
}

t.test('a request is answered once, whatever its body does after the answer', async (t) => {
  const { port } = await startApp(t, { REQUEST_TIMEOUT_MS: '3000' })
  const endless = 'Content-Length: 20\r\n\r\n{'
  const requests = [
    [404, `POST /nothing HTTP/1.1\r\n${HEAD}${endless}`],
    [401, `POST /pets HTTP/1.1\r\n${HEAD}${endless}`],
    [401, `POST /pets HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{`],
    [401, `POST /pets HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`, 'garbage\r\n\r\n'],
    [405, `PUT /pets HTTP/1.1\r\n${HEAD}${endless}`],
    [200, `GET /livez HTTP/1.1\r\n${HEAD}${endless}`]
  ] as const
  await Promise.all(requests.map(async ([status, bytes, more]) => {
    const text = await receiveAll(port, bytes, more)
    t.same(text.match(/HTTP\/1\.1 \d+/g), [`HTTP/1.1 ${status}`], bytes.slice(0, 20))
  }))
})

t.test('hosts of every form are accepted', async (t) => {
  const { port } = await startApp(t)
  const hosts = ['', 'x', 'x:80', 'x:', '127.0.0.1:3000', '[::1]', '[::1]:80', 'xn--fsqu00a.example', 'a_b-c.d~e']
  for (const host of hosts) {
    t.match(await sendBytes(port, `GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`), { status: 200 }, host)
  }
})

t.test('garbage after a request does not change its response', async (t) => {
  const { port } = await startApp(t)
  for (const garbage of ['garbage\r\n\r\n', '\x00', '{', `GET /livez HTTP/1.1\r\nA: ${'x'.repeat(17_000)}`]) {
    for (const path of ['/livez', '/readyz']) {
      t.match(
        await sendBytes(port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n${garbage}`),
        { status: 200, body: { status: 'ok' } },
        `${path} ${JSON.stringify(garbage.slice(0, 20))}`
      )
    }
  }
})

t.test('garbage after a request ends the connection after its response', async (t) => {
  const { port } = await startApp(t)
  for (const garbage of ['garbage\r\n\r\n', '\x00', '{']) {
    const text = await receiveAll(port, `GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n${garbage}`)
    t.match(text, /^HTTP\/1\.1 200 .*^connection: close\r$.*"ok"/ims, JSON.stringify(garbage))
  }
})

t.test('repeated garbage after the request of a stream adds no listeners, and the stream still ends', async (t) => {
  const { app, port, openAccount } = await startApp(t)
  const { key } = await openAccount()
  const warnings: Error[] = []
  process.on('warning', (warning) => { warnings.push(warning) })
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => { socket.destroy() })
  socket.write(`GET /events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nAccept: text/event-stream\r\n\r\n`)
  await once(socket, 'data')
  for (let i = 0; i < 50; i++) {
    socket.write('x')
    await sleep(2)
  }
  const ended = once(socket, 'close')
  socket.resume()
  await app.close()
  await ended
  t.same(warnings, [])
})

t.test('header fields above the limit are rejected, and header fields at the limit are accepted', async (t) => {
  const { port } = await startApp(t)
  for (const fields of [`A: ${'x'.repeat(17_000)}\r\n`, 'A: xxxx\r\n'.repeat(4_000), `${'a'.repeat(17_000)}: x\r\n`]) {
    refusedBare(
      t,
      await sendBytes(port, `GET /livez HTTP/1.1\r\nHost: x\r\n${fields}\r\n`),
      431,
      'headers_too_large',
      fields.slice(0, 20)
    )
  }
  refusedBare(
    t,
    await sendBytes(port, `GET /livez HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(100_000)}\r\n\r\n`),
    431,
    'headers_too_large',
    'more than is read'
  )
  t.match(await sendBytes(port, `GET /livez HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(15_000)}\r\n\r\n`), { status: 200 })
})

t.test('the separators of header fields count', async (t) => {
  const { port } = await startApp(t)
  // Each field has 96 bytes on the wire, 4 of them separators; the limit is 16,384.
  const fields = async (count: number): Promise<number | undefined> =>
    (await sendBytes(port, `GET /livez HTTP/1.1\r\nHost: x\r\n${`A: ${'x'.repeat(91)}\r\n`.repeat(count)}\r\n`))?.status
  t.equal(await fields(170), 200)
  t.equal(await fields(171), 431)
})

t.test('a head has at most 200 fields, and one with more ends its connection', async (t) => {
  const { port } = await startApp(t)
  for (const [count, status] of [[199, 200], [200, 431], [2_000, 431], [9_000, 431]] as const) {
    const answer = await sendBytes(port, `GET /livez HTTP/1.1\r\nHost: x\r\n${'abc:\r\n'.repeat(count)}\r\n`)
    t.equal(answer?.status, status, `Host and ${count} fields`)
    if (status === 200) continue
    refusedBare(t, answer, 431, 'headers_too_large', String(count))
    t.equal(answer?.headers['connection'], 'close')
  }
})

t.test('a target above all limits gets 414', async (t) => {
  const { port } = await startApp(t)
  for (const length of [8_193, 20_000, 60_000]) {
    const answer = await sendBytes(port, `GET /${'x'.repeat(length - 1)} HTTP/1.1\r\nHost: x\r\n\r\n`)
    refusedBare(t, answer, 414, 'uri_too_long', String(length))
  }
})

t.test('a request that arrives too slowly is rejected', async (t) => {
  const { port } = await startApp(t, { REQUEST_TIMEOUT_MS: '300' })
  const started = Date.now()
  const slow = [
    'GET /livez HTT',
    'GET /livez HTTP/1.1\r\nHost: x\r\nA: ',
    `POST /accounts HTTP/1.1\r\n${HEAD}Content-Length: 20\r\n\r\n{`,
    `POST /accounts HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\n{`
  ]
  const answers = await Promise.all(slow.map(async (bytes) => await sendBytes(port, bytes)))
  answers.forEach((answer, i) => {
    refusedBare(t, answer, 408, 'request_timeout', JSON.stringify(slow[i]!.slice(0, 50)))
  })
  t.ok(Date.now() - started < 50_000, "before Node's own limit of 60 s")
})

t.test('a request with a parsed head keeps its own Request-Id in every error', async (t) => {
  const { port } = await startApp(t, { REQUEST_TIMEOUT_MS: '3000' })
  const named = `POST /accounts HTTP/1.1\r\n${HEAD}Request-Id: mine-1\r\n`
  for (const [bytes, status] of [
    [`${named}Content-Length: 20\r\n\r\n{`, 408],
    [`${named}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}`, 400],
    ['CONNECT pets.example:443 HTTP/1.1\r\nHost: x\r\nRequest-Id: mine-1\r\n\r\n', 400]
  ] as const) {
    t.match(await sendBytes(port, bytes), { status, headers: { 'request-id': 'mine-1' } }, bytes.slice(0, 30))
  }
})

t.test('an unknown expectation is ignored', async (t) => {
  const { port } = await startApp(t)
  t.match(await sendBytes(port, 'GET /livez HTTP/1.1\r\nHost: x\r\nExpect: a-pony\r\n\r\n'), {
    status: 200,
    body: { status: 'ok' }
  })
})

t.test('HTTP/1.0, an offer to upgrade and a request in pieces are accepted', async (t) => {
  const { port } = await startApp(t)
  for (const bytes of [
    'GET /livez HTTP/1.0\r\n\r\n',
    'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n' +
      'Upgrade: h2c\r\nHTTP2-Settings: AAAA\r\n\r\n'
  ]) {
    t.match(await sendBytes(port, bytes), { status: 200, body: { status: 'ok' } }, bytes.slice(0, 40))
  }
  t.match(await sendBytes(port, ...'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'), { status: 200 })
})

t.test('CONNECT is rejected, and other connections continue', async (t) => {
  const { port } = await startApp(t)
  for (const rest of ['', 'hello']) {
    refusedBare(
      t,
      await sendBytes(port, `CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n${rest}`),
      400,
      'bad_request',
      'CONNECT'
    )
  }
  t.match(await sendBytes(port, 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'), { status: 200 })
})
