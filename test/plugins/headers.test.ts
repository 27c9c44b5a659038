// Only on SQLite: checks header fields, which no statement decides.

import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { readerOf } from '../support/checks.ts'
import { stockedStore } from '../support/operations.ts'
import { sendBytes, watchConnections } from '../support/socket.ts'

/** Requests a response of every kind: a record, a list, no body, and errors from each stage of a request. */
async function answersOf (
  client: Client,
  nobody: Client,
  headers: Record<string, string> = {}
): Promise<Array<[name: string, answer: Answer]>> {
  const json = { 'content-type': 'application/json' }
  const etag = String((await client.get('/account')).headers.etag)
  return await Promise.all(
    (
      [
        ['a record', client.get('/account', headers)],
        ['a list', client.get('/pets', headers)],
        ['not modified', client.get('/account', { ...headers, 'if-none-match': etag })],
        ['created', client.post('/categories', { name: 'Dogs' }, headers)],
        ['HEAD', client.request('HEAD', '/pets', { headers })],
        ['OPTIONS', nobody.request('OPTIONS', '/pets', { headers })],
        ['service', nobody.get('/livez', headers)],
        ['invalid json', client.request('POST', '/pets', { headers: { ...headers, ...json }, body: '{' })],
        ['invalid field', client.post('/pets', {}, headers)],
        ['no key', nobody.get('/pets', headers)],
        ['no record', client.get('/categories/4711', headers)],
        ['no address', nobody.get('/nothing', headers)],
        ['no method', nobody.request('PUT', '/pets', { headers })],
        ['conflict', client.post('/pets', { name: 'Rex', categoryId: 4711 }, headers)],
        ['precondition', client.delete('/account', { ...headers, 'if-match': '"0"' })],
        [
          'too large',
          client.request('POST', '/pets', { headers: { ...headers, ...json }, body: ' '.repeat(140_000) })
        ],
        ['too long', nobody.get(`/${'x'.repeat(9000)}`, headers)],
        ['broken escape', nobody.get('/%', headers)]
      ] as Array<[string, Promise<Answer>]>
    ).map(async ([name, answer]) => [name, await answer] as [string, Answer])
  )
}

t.test('every response keeps the Request-Id of the client', async (t) => {
  const { openAccount, nobody } = await startApp(t)
  const client = await openAccount()
  for (const id of ['x', 'A-Za-z0-9._~:-', 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6', 'x'.repeat(128)]) {
    for (const [name, { headers }] of await answersOf(client, nobody, { 'request-id': id })) {
      t.equal(headers['request-id'], id, name)
    }
  }
})

/** Matches an id of the service, which is longer than the ids sent here. */
const OWN = /^[A-Za-z0-9._~:-]{8,128}$/

t.test('an invalid Request-Id is replaced by a new one', async (t) => {
  const { openAccount, nobody } = await startApp(t)
  const client = await openAccount()
  const seen = new Set<unknown>()
  let answers = 0
  for (const id of [undefined, '', 'x'.repeat(129), 'a b', 'a,b', 'a/b', '"a"', 'a;b', 'é', 'x%0a', '<x>', '{}']) {
    for (const [name, { headers }] of await answersOf(client, nobody, id === undefined ? {} : { 'request-id': id })) {
      t.match(headers['request-id'], OWN, `${name} ${id}`)
      t.not(headers['request-id'], id)
      seen.add(headers['request-id'])
      answers++
    }
  }
  t.equal(seen.size, answers, 'no two are the same')
  const twice = await client.request('GET', '/account', { headers: { 'request-id': ['a', 'b'] } })
  t.match(twice.headers['request-id'], OWN)
})

t.test('every response has the security headers, and none names a product or version', async (t) => {
  const { openAccount, nobody } = await startApp(t)
  for (const [name, { headers }] of await answersOf(await openAccount(), nobody)) {
    t.match(headers, {
      'x-content-type-options': 'nosniff',
      'content-security-policy': /default-src 'none'/,
      'x-frame-options': /^(SAMEORIGIN|DENY)$/,
      'referrer-policy': 'no-referrer'
    }, name)
    for (const banner of ['server', 'x-powered-by', 'via']) t.notOk(banner in headers, `${name} ${banner}`)
  }
})

t.test('errors and secrets are never cached; clients revalidate all other responses', async (t) => {
  const { openAccount, nobody, withKey } = await startApp(t)
  const client = await openAccount()
  for (const [name, { status, headers }] of await answersOf(client, nobody)) {
    if (name === 'service' || name === 'OPTIONS') continue
    t.equal(headers['cache-control'], status >= 400 ? 'no-store' : 'private, no-cache', name)
  }
  const reader = await readerOf(client, withKey)
  for (const answer of [
    await nobody.post('/accounts', { name: 'A store' }),
    await client.post('/account/keys', {}),
    await reader.post('/account/keys', {})
  ]) {
    t.equal(answer.headers['cache-control'], 'no-store')
  }
})

const EXPOSED = [
  'ETag',
  'Link',
  'Location',
  'Request-Id',
  'Deprecation',
  'Sunset',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'Idempotency-Replayed',
  'Event-Id',
  'WWW-Authenticate',
  'Petstore-Fault',
  'Petstore-Clock'
]
const ALLOWED = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'If-Match',
  'If-None-Match',
  'Last-Event-ID',
  'Petstore-Run',
  'Request-Id'
]
const PREFLIGHT = {
  'access-control-request-method': 'PATCH',
  'access-control-request-headers': 'authorization,content-type,if-match'
}

function names (field: string | undefined): string[] {
  return (field ?? '').split(',').map((name) => name.trim()).sort()
}

t.test('by default, no other origin has access', async (t) => {
  const { openAccount, nobody } = await startApp(t)
  const origin = 'https://app.example'
  for (const [name, { headers }] of await answersOf(await openAccount(), nobody, { origin })) {
    t.same(Object.keys(headers).filter((field) => field.startsWith('access-control-')), [], name)
  }
  const preflight = await nobody.request('OPTIONS', '/pets', { headers: { origin, ...PREFLIGHT } })
  t.equal(preflight.status, 204)
  t.same(Object.keys(preflight.headers).filter((field) => field.startsWith('access-control-')), [])
})

t.test('CORS_ORIGINS gives access to these origins and no others', async (t) => {
  const { openAccount, nobody } = await startApp(t, { CORS_ORIGINS: 'https://app.example, http://localhost:5173' })
  const client = await openAccount()
  for (const origin of ['https://app.example', 'http://localhost:5173']) {
    for (const [name, { headers }] of await answersOf(client, nobody, { origin })) {
      t.equal(headers['access-control-allow-origin'], origin, name)
      t.same(names(headers['access-control-expose-headers']), [...EXPOSED].sort(), name)
      t.ok(names(headers.vary).includes('Origin'), `${name} varies by origin`)
      t.notOk('access-control-allow-credentials' in headers)
    }
  }
  for (const headers of [
    { origin: 'https://evil.example' },
    { origin: 'https://app.example.evil' },
    { origin: 'http://app.example' },
    { origin: 'null' },
    {}
  ] as Array<Record<string, string>>) {
    for (const [name, answer] of await answersOf(client, nobody, headers)) {
      t.notOk('access-control-allow-origin' in answer.headers, `${name} ${headers['origin']}`)
      t.ok(names(answer.headers.vary).includes('Origin'), `${name} varies by origin`)
    }
  }
})

t.test('CORS_ORIGINS are origins, however they are written', async (t) => {
  const CORS_ORIGINS = 'https://App.Example:443, http://localhost:80, https://bücher.example, http://[0::1]:*'
  const { nobody } = await startApp(t, { CORS_ORIGINS })
  for (const origin of [
    'https://app.example', 'http://localhost', 'https://xn--bcher-kva.example', 'http://[::1]:5173', 'http://[::1]'
  ]) {
    t.equal((await nobody.get('/pets', { origin })).headers['access-control-allow-origin'], origin, origin)
  }
  for (const origin of ['http://app.example', 'https://app.example:444', 'http://localhost:5173', 'https://[::1]']) {
    t.notOk('access-control-allow-origin' in (await nobody.get('/pets', { origin })).headers, origin)
  }
})

t.test('a demo gives access to pages of this machine, unless CORS_ORIGINS says otherwise', async (t) => {
  const allowed = async (settings: Record<string, string>, origin: string): Promise<unknown> => {
    const client = await (await startApp(t, settings)).openAccount()
    return (await client.get('/pets', { origin })).headers['access-control-allow-origin']
  }
  const demo = { DEMO: 'true' }
  for (const origin of ['http://localhost:5173', 'http://127.0.0.1:8080', 'http://localhost']) {
    t.equal(await allowed(demo, origin), origin)
  }
  for (const origin of [
    'https://localhost:5173', 'http://localhost.evil.example:80', 'http://127x0.0.1:80', 'http://localhost:5173.evil'
  ]) {
    t.equal(await allowed(demo, origin), undefined, origin)
  }
  t.equal(await allowed({}, 'http://localhost:5173'), undefined, 'without the demo')
  t.equal(await allowed({ ...demo, CORS_ORIGINS: 'https://app.example' }, 'http://localhost:5173'), undefined)
})

t.test('pages of these origins can read the 503 of a stopping service', async (t) => {
  const { app, port } = await startApp(t, { CORS_ORIGINS: 'https://app.example' })
  const heardFrom = watchConnections(app.server)
  const rest = 'Host: x\r\nOrigin: https://app.example\r\n\r\n'
  let closed: Promise<void> | undefined
  const closing = heardFrom(1).then(() => { closed = app.close() })
  const answer = await sendBytes(port, 'GET /pets HTTP/1.1\r\n', closing.then(async () => await sleep(200, rest)))
  await closed
  t.match(answer, {
    status: 503,
    body: { code: 'shutting_down' },
    headers: { 'access-control-allow-origin': 'https://app.example', vary: /Origin/, 'retry-after': '1' }
  })
})

t.test('a preflight response lists the allowed methods and headers', async (t) => {
  const { openAccount, nobody } = await startApp(t, { CORS_ORIGINS: 'https://app.example' })
  const { petId } = await stockedStore(await openAccount())
  for (const path of ['/pets', `/pets/${petId}`, '/accounts', '/livez']) {
    const { status, headers, text } = await nobody.request('OPTIONS', path, {
      headers: { origin: 'https://app.example', ...PREFLIGHT }
    })
    t.same({ status, text }, { status: 204, text: '' }, path)
    t.equal(headers['access-control-allow-origin'], 'https://app.example')
    t.same(names(headers['access-control-allow-headers']), [...ALLOWED].sort())
    t.same(
      names(headers['access-control-allow-methods']).filter((name) =>
        ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].includes(name)
      ),
      ['DELETE', 'GET', 'PATCH', 'POST', 'PUT']
    )
    t.match(headers.allow, /OPTIONS/, 'and Allow says what there is')
    t.ok(names(headers.vary).includes('Origin'))
  }
  const other = await nobody.request('OPTIONS', '/pets', { headers: { origin: 'https://evil.example', ...PREFLIGHT } })
  t.equal(other.status, 204)
  t.notOk('access-control-allow-origin' in other.headers)
})

t.test('pages of every origin can read the document, with or without a preflight', async (t) => {
  const { nobody } = await startApp(t)
  const origin = 'https://any.example'
  for (const path of ['/openapi.json', '/openapi.yaml', '/.well-known/api-catalog']) {
    const preflight = await nobody.request('OPTIONS', path, {
      headers: { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'if-none-match' }
    })
    t.equal(preflight.status, 204)
    t.equal(preflight.headers['access-control-allow-origin'], '*', path)
    t.same(names(preflight.headers['access-control-allow-headers']), [...ALLOWED].sort())
    t.match(preflight.headers['access-control-allow-methods'], 'GET')
    t.equal(preflight.headers.allow, 'GET, HEAD, OPTIONS')
    t.equal((await nobody.get(path, { origin })).headers['access-control-allow-origin'], '*')
  }
})

t.test('CORS_ORIGINS=* gives access to every origin', async (t) => {
  const { openAccount, nobody } = await startApp(t, { CORS_ORIGINS: '*' })
  const { headers } = await (await openAccount()).get('/pets', { origin: 'https://any.example' })
  t.equal(headers['access-control-allow-origin'], '*')
  t.ok(names(headers.vary).includes('Origin'))
  t.equal(
    (await nobody.request('OPTIONS', '/pets', { headers: { origin: 'https://any.example', ...PREFLIGHT } })).headers[
      'access-control-allow-origin'
    ],
    '*'
  )
})

t.test('a 401 has a challenge, with an error code only if the request sent a bearer credential', async (t) => {
  const { openAccount, nobody } = await startApp(t)
  const client = await openAccount()
  const key = client.key!
  const { body: expired } = await client.post('/account/keys', { expiresAt: '2020-01-01T00:00:00Z' })
  const bare = 'Bearer realm="petstore"'
  const invalid = `${bare}, error="invalid_token"`
  const table: Array<[authorization: string | undefined, challenge: string]> = [
    [undefined, bare],
    ['Basic YWRhOmFkYQ==', bare],
    [`Token ${key}`, bare],
    [key, bare],
    [`Bearer${key}`, bare],
    [`Bearers ${key}`, bare],
    [`X-Bearer ${key}`, bare],
    ['Digest username="x"', bare],
    ['Bearer x', invalid],
    [`Bearer ${key}x`, invalid],
    [`Bearer ${key.slice(0, -1)}`, invalid],
    [`Bearer ${key.toLowerCase()}`, invalid],
    [`Bearer "${key}"`, invalid],
    [`Bearer ${key} ${key}`, invalid],
    [`Bearer ${key}, Bearer ${key}`, invalid],
    [`bearer ${expired.apiKey}`, invalid],
    ['BEARER x', invalid],
    [`Bearer ${'x'.repeat(5000)}`, invalid],
    ['Bearer \u00e9', invalid]
  ]
  for (const [authorization, challenge] of table) {
    const { status, headers, body } = await nobody.get('/account', authorization === undefined ? {} : { authorization })
    t.same(
      { status, code: body.code, challenge: headers['www-authenticate'] },
      { status: 401, code: 'unauthorized', challenge },
      String(authorization?.slice(0, 40))
    )
    t.notOk(
      authorization !== undefined && authorization.length > 9 && body.message.includes(authorization.slice(7)),
      'the credential is not repeated'
    )
  }
})

t.test('the scheme Bearer is case-insensitive', async (t) => {
  const { openAccount, nobody } = await startApp(t)
  const { key } = await openAccount()
  for (const word of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
    t.equal((await nobody.get('/account', { authorization: `${word} ${key}` })).status, 200, word)
  }
  t.equal(
    (await nobody.get('/account', { authorization: `Bearer   ${key}  ` })).status,
    200,
    'with more spaces (RFC 9110 section 11.4)'
  )
})

t.test('a 403 for a read-only key names the missing scope, and no other response has a challenge', async (t) => {
  const { openAccount, withKey, nobody } = await startApp(t)
  const client = await openAccount()
  const { status, headers } = await (await readerOf(client, withKey)).post('/categories', { name: 'x' })
  t.same(
    { status, challenge: headers['www-authenticate'] },
    { status: 403, challenge: 'Bearer realm="petstore", error="insufficient_scope"' }
  )
  for (const [name, answer] of await answersOf(client, nobody)) {
    t.equal('www-authenticate' in answer.headers, answer.status === 401, name)
  }
})

t.test('documents name the origin of the request, whatever a proxy passes on', async (t) => {
  const { nobody } = await startApp(t, { TRUST_PROXY: '1' })
  const serverFor = async (headers: Record<string, string>): Promise<unknown> => {
    const { body } = await nobody.get('/openapi.json', headers)
    return body?.servers[0].url
  }
  for (const [proto, scheme] of [
    ['https', 'https'], ['HTTPS', 'https'], ['http, https', 'https'], ['javascript', 'http'], ['"', 'http'],
    ["$'".repeat(200), 'http'], ['$&', 'http'], ['', 'http']
  ] as const) {
    t.equal(await serverFor({ host: 'pets.example', 'x-forwarded-proto': proto }), `${scheme}://pets.example`, proto)
  }
  t.equal(await serverFor({ host: `${'x'.repeat(251)}.com:65535` }), `http://${'x'.repeat(251)}.com:65535`)
  for (const host of ['x'.repeat(262), "$'", '$$']) t.equal(await serverFor({ host }), 'http://localhost', host)
})
