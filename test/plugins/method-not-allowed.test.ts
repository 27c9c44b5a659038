// Only on SQLite: sends requests that reach no handler.

import { METHODS } from 'node:http'
import t from 'tap'
import { startApp } from '../support/app.ts'
import { assertError } from '../support/checks.ts'
import { operationsOf, pathOf, stockedStore } from '../support/operations.ts'
import { sendBytes } from '../support/socket.ts'

/** Routes about the service itself, which the document omits. */
const SERVICE = ['/livez', '/readyz']

/** Returns every path of the service with its documented methods. */
async function addresses (t: Parameters<typeof startApp>[0]) {
  const started = await startApp(t)
  const client = await started.openAccount()
  const ids = await stockedStore(client)
  const methods = new Map<string, Set<string>>(SERVICE.map((path) => [path, new Set(['GET', 'HEAD', 'OPTIONS'])]))
  for (const operation of operationsOf(started.app)) {
    const path = pathOf(operation, ids)
    const known = methods.get(path) ?? new Set(['OPTIONS'])
    methods.set(path, known.add(operation.method))
    if (operation.method === 'GET') known.add('HEAD')
  }
  return { ...started, client, methods }
}

function listed (allow: string | undefined): string[] {
  return (allow ?? '').split(', ').sort()
}

t.test('every path rejects other methods, and Allow lists its own', async (t) => {
  const { client, nobody, methods, port } = await addresses(t)
  for (const [path, known] of methods) {
    // A path with a parameter matches it as well.
    const others = path.endsWith('/lab/requests/verify') ? ['CONNECT', 'GET', 'HEAD'] : ['CONNECT']
    for (const method of METHODS.filter((method) => !known.has(method) && !others.includes(method))) {
      const answer = await sendBytes(
        port,
        `${method} ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{`
      )
      t.equal(answer?.status, 405, `${method} ${path}`)
      if (method !== 'HEAD') t.match(answer?.body, { code: 'method_not_allowed', status: 405 })
      t.same(listed(answer?.headers['allow']), [...known].sort())
    }
    for (const client_ of [client, nobody]) {
      const answer = await client_.request('PROPFIND', `${path}?x=1`, { body: {} })
      assertError(t, answer, 405, 'method_not_allowed', 'PROPFIND', `PROPFIND ${path}`)
      t.same(listed(answer.headers.allow), [...known].sort())
    }
  }
})

t.test('Allow lists GET with and without the slash at the end of the base path', async (t) => {
  const { nobody } = await startApp(t, { BASE_PATH: '/v1' })
  for (const path of ['/v1', '/v1/']) {
    t.equal((await nobody.get(path)).status, 200)
    t.equal((await nobody.request('OPTIONS', path)).headers.allow, 'GET, HEAD, OPTIONS', path)
  }
})

t.test('every path answers OPTIONS without a key', async (t) => {
  const { nobody, methods } = await addresses(t)
  for (const [path, known] of methods) {
    const { status, text, headers } = await nobody.request('OPTIONS', path, {
      headers: { 'content-type': 'application/json', 'content-length': '1' },
      body: '{'
    })
    t.same({ status, text, allow: listed(headers.allow) }, { status: 204, text: '', allow: [...known].sort() }, path)
  }
  assertError(t, await nobody.request('OPTIONS', '/nothing'), 404, 'route_not_found')
})

t.test('every path with GET answers HEAD, with the same header fields and no body', async (t) => {
  const { client, nobody, methods } = await addresses(t)
  for (const [path, known] of methods) {
    if (!known.has('GET')) continue
    for (const [who, client_] of [['key', client], ['nobody', nobody]] as const) {
      const get = await client_.get(path)
      const head = await client_.request('HEAD', path)
      t.equal(head.text, '', path)
      const { date, 'request-id': id, connection, 'keep-alive': alive, ...fields } = get.headers
      const {
        date: _date,
        'request-id': _id,
        connection: _connection,
        'keep-alive': _alive,
        ...headFields
      } = head.headers
      t.same({ status: head.status, ...headFields }, { status: get.status, ...fields }, `${path} ${who}`)
    }
  }
})

t.test('HEAD sends no Content-Length that GET would not send', async (t) => {
  const { client, nobody } = await addresses(t)
  for (const path of ['/account', '/pets', '/openapi.json']) {
    const { headers: { etag } } = await client.get(path)
    const get = await client.get(path, { 'if-none-match': etag! })
    const head = await client.request('HEAD', path, { headers: { 'if-none-match': etag! } })
    t.same([get.status, head.status], [304, 304])
    t.same(Object.keys(head.headers).sort(), Object.keys(get.headers).sort(), path)
    t.notOk('content-length' in head.headers)
  }
  const stream = await client.request('HEAD', '/events', { headers: { accept: 'text/event-stream' } })
  t.equal(stream.status, 200)
  t.match(stream.headers['content-type'], /^text\/event-stream/)
  t.notOk('content-length' in stream.headers)
  t.equal((await nobody.request('HEAD', '/events', { headers: { accept: 'text/event-stream' } })).status, 401)
})

t.test('an unknown path is a 404 before all other checks', async (t) => {
  const { client, nobody, methods } = await addresses(t)
  const unknown = [
    '/nothing',
    '//',
    '//pets',
    '/pets//',
    '/Pets',
    '/pets;x',
    '/pet',
    '/petss',
    '/pets/7/x',
    '/pets%2F7',
    '/store',
    '/store/',
    '/.',
    '/..',
    '/pets.json',
    '/pets%00',
    '/%00',
    '/__proto__',
    '/constructor',
    '/*',
    '/:petId',
    '/{petId}'
  ]
  for (const path of [...unknown, ...[...methods.keys()].flatMap((path) => [`${path}/`, `/${path}`, `${path}//`])]) {
    for (const method of ['GET', 'POST', 'PUT', 'OPTIONS']) {
      for (const client_ of [client, nobody]) {
        assertError(
          t,
          await client_.request(method, path, {
            headers: { 'content-type': 'application/json', 'content-length': '1' },
            body: '{'
          }),
          404,
          'route_not_found',
          'No route matches this path',
          `${method} ${path}`
        )
      }
    }
  }
})

t.test('without the lab, the 404 of its paths says how to turn it on', async (t) => {
  const LAB_OFF = 'No route matches this path. The lab is off. Start the service with LAB=true to turn it on.'
  const { nobody, withKey } = await startApp(t, { LAB: 'false', BASE_PATH: '/v1' })
  for (const client of [nobody, withKey('psk_nonsense')]) {
    for (const request of ['POST /v1/lab/reset', 'GET /v1/lab/faults/1?x', 'OPTIONS /v1/lab/clock', 'POST /v1/mcp']) {
      const [method = '', path = ''] = request.split(' ')
      assertError(t, await client.request(method, path), 404, 'route_not_found', LAB_OFF)
    }
    const ALL_ROUTES = 'No route matches this path. GET /v1/openapi.json lists all routes.'
    assertError(t, await client.get('/v1/labs'), 404, 'route_not_found', ALL_ROUTES)
  }
})

t.test('the query does not affect routing', async (t) => {
  const { client } = await addresses(t)
  t.equal((await client.get('/livez?x=1&x=%25')).status, 200, 'service routes ignore theirs')
  assertError(t, await client.get('/nothing?/pets'), 404, 'route_not_found')
  assertError(t, await client.request('PUT', '/pets?/nothing'), 405, 'method_not_allowed')
})

t.test('an invalid percent-escape is rejected', async (t) => {
  const { client, nobody } = await addresses(t)
  for (const path of [
    '/%',
    '/%zz',
    '/pets/%',
    '/pets/%1',
    '/pets/%zz',
    '/pets/%E0%A4%A',
    '/pets/%C3',
    '/pets/%ED%A0%80',
    '/pets/%FF',
    '/messages/%',
    '/nothing/%',
    '/livez%',
    '/pets?%',
    '/pets?limit=%zz',
    '/livez?x=%FF'
  ]) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'OPTIONS', 'DELETE']) {
      for (const client_ of [client, nobody]) {
        const answer = await client_.request(method, path, { body: method === 'POST' ? {} : undefined })
        t.equal(answer.status, 400, `${method} ${path}`)
        if (method !== 'HEAD') assertError(t, answer, 400, 'bad_request', 'percent-escape', `${method} ${path}`)
      }
    }
  }
})

t.test('a URL above the limit is rejected, and a URL at the limit is accepted', async (t) => {
  const { client, nobody } = await addresses(t)
  for (const client_ of [client, nobody]) {
    for (const path of [
      `/${'x'.repeat(8192)}`,
      `/pets/${'1'.repeat(8192)}`,
      `/pets?${'id=1&'.repeat(2000)}`,
      `/livez?${'x'.repeat(9000)}`
    ]) {
      for (const method of ['GET', 'POST', 'PUT', 'OPTIONS']) {
        assertError(
          t,
          await client_.request(method, path),
          414,
          'uri_too_long',
          '8192',
          `${method} ${path.slice(0, 20)}`
        )
      }
    }
  }
  for (const length of [16_000, 17_000, 40_000, 60_000, 100_000]) {
    assertError(t, await nobody.get(`/${'x'.repeat(length)}`), 414, 'uri_too_long', '8192', String(length))
    assertError(t, await client.get(`/pets/${'1'.repeat(length)}`), 414, 'uri_too_long', '8192', String(length))
  }
  assertError(t, await client.get(`/${'x'.repeat(8191)}`), 404, 'route_not_found')
  assertError(t, await client.get(`/pets/${'1'.repeat(8000)}`), 400, 'validation_failed', 'petId')
})

t.test('absolute URLs, as proxies send them, are accepted', async (t) => {
  const { client, port } = await addresses(t)
  const ask = async (target: string) =>
    await sendBytes(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${client.key}\r\n\r\n`)
  for (const host of ['http://x', 'HTTPS://pets.example:8080']) {
    const page = await ask(`${host}/pets?limit=1`)
    t.match(page, { status: 200, headers: { link: '</pets?limit=1>; rel="first"' } })
    t.match(await ask(`${host}/nothing`), { status: 404, body: { code: 'route_not_found' } })
    t.match(await ask(`${host}?x=1`), { headers: { 'request-id': /./ } })
  }
})
