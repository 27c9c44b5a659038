// Only on SQLite: checks the parsing of bodies.

import Fastify, { type LightMyRequestResponse, type preParsingAsyncHookHandler } from 'fastify'
import t from 'tap'
import { admission } from '../../src/plugins/admission.ts'
import { contentTypeParsers } from '../../src/plugins/content-type-parsers.ts'
import type { Answer, Client } from '../support/app.ts'
import { startApp } from '../support/app.ts'
import { assertError } from '../support/checks.ts'
import { bodyOf, operationsOf, pathOf, stockedStore, type Ids, type Operation } from '../support/operations.ts'
import { sendBytes } from '../support/socket.ts'

// Bodies of operations with a body, and bodies sent to the other operations.

const JSON_TYPE = { 'content-type': 'application/json' }

/** Sign-up has a lower limit than BODY_LIMIT. */
const MAX_SIGNUP_BYTES = 8_192

const operations = operationsOf((await startApp(t)).app)
// Files of stores have tests of their own.
const writers = operations.filter(({ mediaType }) => mediaType === 'application/json')
const others = operations.filter(({ body }) => body === undefined)

function sender (client: Client, ids: Ids) {
  return async (
    operation: Operation,
    body: string | Buffer,
    headers: Record<string, string> = JSON_TYPE
  ): Promise<Answer> => await client.request(operation.method, pathOf(operation, ids), { headers, body })
}

t.test('a client that waits for 100 Continue is asked for no body that is too large', async (t) => {
  const { openAccount, port } = await startApp(t, { BODY_LIMIT: '2000' })
  const { key } = await openAccount()
  const answer = await sendBytes(port, 'POST /categories HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n' +
    `Authorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 2001\r\n\r\n`)
  t.equal(answer?.status, 413)
})

t.test('every operation with a body rejects a body that is not a JSON object', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  const send = sender(client, await stockedStore(client))
  const broken: Array<string | Buffer> = [
    '',
    ' ',
    '{',
    '}',
    '{"a":1',
    '{"a"}',
    "{'a':1}",
    '{a:1}',
    '{"a":1,}',
    '{}{}',
    '{} x',
    'undefined',
    'NaN',
    '// x\n{}',
    '{"name":"\n"}',
    '{"name":"\\x"}',
    '{"name":"\\u12"}',
    Buffer.from([0xff]),
    Buffer.from('{"name":"\xff"}', 'latin1'),
    Buffer.from('{"name":"\xed\xa0\x80"}', 'latin1'),
    Buffer.from('{"name":"\xc0\x80"}', 'latin1'),
    Buffer.from('{"name":"\xf4\x90\x80\x80"}', 'latin1'),
    Buffer.from('{"name":"x"}', 'utf16le'),
    Buffer.from([0, 0, 0, 0]),
    '[' + '['.repeat(100_000),
    '{"name":'.repeat(16_000)
  ]
  for (const operation of writers) {
    const fits = (body: string | Buffer): boolean =>
      operation.operationId !== 'createAccount' || body.length <= MAX_SIGNUP_BYTES
    for (const body of broken.filter(fits)) {
      assertError(
        t,
        await send(operation, body),
        400,
        'invalid_json',
        'not valid JSON',
        `${operation.operationId} ${JSON.stringify(String(body).slice(0, 20))}`
      )
    }
    for (const body of [
      'null',
      'true',
      '5',
      '1e400',
      '"text"',
      '[]',
      '[{"name":"x"}]',
      '['.repeat(60_000) + ']'.repeat(60_000)
    ].filter(fits)) {
      assertError(
        t,
        await send(operation, body),
        400,
        'validation_failed',
        'The body must be an object',
        `${operation.operationId} ${body.slice(0, 20)}`
      )
    }
  }
})

t.test('100,000 levels of nesting do no harm in any place', async (t) => {
  const { openAccount } = await startApp(t, { BODY_LIMIT: '1048576' })
  const client = await openAccount()
  const ids = await stockedStore(client)
  const send = sender(client, ids)
  for (const operation of writers.filter(({ operationId }) => operationId !== 'createAccount')) {
    for (const [name] of Object.entries(operation.body?.properties ?? {})) {
      for (const deep of [
        '['.repeat(100_000) + ']'.repeat(100_000),
        '{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000),
        '{"__proto__":'.repeat(20_000) + '1' + '}'.repeat(20_000)
      ]) {
        const text = JSON.stringify(bodyOf(operation, ids, { [name]: 0 })).replace(`"${name}":0`, `"${name}":${deep}`)
        assertError(
          t,
          await send(operation, text),
          400,
          'validation_failed',
          /\w/,
          `${operation.operationId} ${name} ${deep.slice(0, 14)}`
        )
      }
    }
  }
  t.equal((await client.get('/account')).status, 200)
})

t.test('the last of two members with the same name counts', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  const ids = await stockedStore(client)
  const { body: category } = await client.request('POST', '/categories', {
    headers: JSON_TYPE,
    body: '{"name": 5, "description": "x", "name": "Cats", "n\\u0061me": "Birds"}'
  })
  t.match(category, { name: 'Birds', description: 'x' })
  const { body: item } = await client.request('PATCH', `/inventory/${ids.petId}`, {
    headers: JSON_TYPE,
    body: '{"quantity": 5.5, "quantity": 6}'
  })
  t.equal(item.quantity, 6)
  assertError(
    t,
    await client.request('PATCH', `/inventory/${ids.petId}`, {
      headers: JSON_TYPE,
      body: '{"quantity": 6, "quantity": "6"}'
    }),
    400,
    'validation_failed',
    'quantity'
  )
})

t.test('__proto__ is rejected as a member and accepted as text', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  for (const name of ['__proto__', 'constructor', '"__proto__":', '{"__proto__": 1}']) {
    const { status, body } = await client.post('/categories', { name })
    t.same({ status, name: body.name }, { status: 201, name })
  }
  const ids = await stockedStore(client)
  const send = sender(client, ids)
  for (const operation of writers) {
    const valid = JSON.stringify(bodyOf(operation, ids))
    const [field = ''] = Object.keys(operation.body?.properties ?? {})
    for (const member of [
      '"__proto__": 1',
      '"__proto__": null',
      '"__proto__": {}',
      '"\\u005f_proto__": {"x": 1}',
      `"${field}": {"__proto__": 1}`,
      `"${field}": [{"a": {"__proto__": null}}]`
    ]) {
      // Last, because the last of two members with the same name counts.
      const text = valid === '{}' ? `{${member}}` : `${valid.slice(0, -1)}, ${member}}`
      assertError(
        t,
        await send(operation, text),
        400,
        'validation_failed',
        '"__proto__" is not allowed',
        `${operation.operationId} ${member}`
      )
    }
  }
})

t.test('a body that only mentions a forbidden member is not JSON', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  for (const body of ['forbidden prototype', 'Object contains forbidden prototype property']) {
    assertError(t, await client.request('POST', '/messages', { headers: JSON_TYPE, body }), 400, 'invalid_json', /JSON/)
  }
})

t.test('a byte order mark is ignored', async (t) => {
  const { openAccount } = await startApp(t)
  const { status, body } = await (
    await openAccount()
  ).request('POST', '/categories', { headers: JSON_TYPE, body: '\ufeff{"name": "Cats"}' })
  t.same({ status, name: body.name }, { status: 201, name: 'Cats' })
})

t.test('a body needs a JSON content type and no content encoding', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  const ids = await stockedStore(client)
  const send = sender(client, ids)
  for (const operation of writers) {
    const text = JSON.stringify(bodyOf(operation, ids))
    const patch = operation.method === 'PATCH'
    for (const type of [
      undefined,
      '',
      ' ',
      'text/plain',
      'text/json',
      'application/jsonx',
      'application/json-patch+json',
      'application/problem+json',
      'json',
      'application/',
      '/json',
      'application/json, text/plain',
      'multipart/form-data; boundary=x',
      'application/x-www-form-urlencoded',
      '*/*',
      ';'
    ]) {
      assertError(
        t,
        await send(operation, text, type === undefined ? {} : { 'content-type': type }),
        400,
        'invalid_content_type',
        'application/json',
        `${operation.operationId} ${type}`
      )
    }
    for (const encoding of ['gzip', 'GZIP', 'br', 'deflate', 'x', 'gzip, identity']) {
      assertError(
        t,
        await send(operation, text, { ...JSON_TYPE, 'content-encoding': encoding }),
        400,
        'invalid_content_type',
        'content encoding',
        `${operation.operationId} ${encoding}`
      )
    }
    for (const type of [
      'APPLICATION/JSON',
      'application/json; charset=utf-8',
      'application/json;charset="UTF-8"',
      'application/json; charset=latin1',
      'application/json ; a=b',
      ...(patch ? ['application/merge-patch+json', 'Application/Merge-Patch+JSON; charset=utf-8'] : [])
    ]) {
      t.ok((await send(operation, text, { 'content-type': type })).status < 300, `${operation.operationId} ${type}`)
    }
    t.ok((await send(operation, text, { ...JSON_TYPE, 'content-encoding': 'Identity' })).status < 300)
    const merge = await send(operation, text, { 'content-type': 'application/merge-patch+json' })
    if (!patch) assertError(t, merge, 400, 'invalid_content_type', 'application/json')
    const nothing = await client.request(operation.method, pathOf(operation, ids))
    assertError(
      t,
      nothing,
      400,
      'invalid_content_type',
      'application/json',
      `${operation.operationId} without anything`
    )
  }
})

t.test('operations without a body ignore any body', async (t) => {
  const { openAccount, withKey } = await startApp(t, { BODY_LIMIT: '1024' })
  const client = await openAccount()
  const huge = '{'.repeat(3_000_000)
  const bodies: Array<[body: string, headers: Record<string, string>]> = [
    ['', JSON_TYPE],
    ['', { ...JSON_TYPE, 'content-length': '0' }],
    ['{', { ...JSON_TYPE, 'content-length': '1' }],
    ['x', { 'content-type': 'text/plain', 'content-length': '1' }],
    ['x', { 'content-type': ';;', 'content-length': '1' }],
    ['x', { 'content-length': '1' }],
    ['x', { ...JSON_TYPE, 'content-encoding': 'gzip', 'content-length': '1' }],
    [huge, { ...JSON_TYPE, 'content-length': String(huge.length) }],
    [huge, { ...JSON_TYPE, 'transfer-encoding': 'chunked' }]
  ]
  for (const [body, headers] of bodies) {
    const store = await openAccount()
    const ids = await stockedStore(store)
    // Deletions come after reads, those of all faults and of the account last.
    const order = ['GET', 'HEAD', 'DELETE', 'deleteFaults', 'deleteAccount']
    const last = ({ method, operationId }: Operation): number =>
      order.findLastIndex((name) => [method, operationId].includes(name))
    const deletable = { ...ids, petId: 0 }
    for (const operation of [...others].sort((a, b) => last(a) - last(b))) {
      const plain = await client.request(
        operation.method,
        pathOf(operation, { ...ids, petId: operation.method === 'DELETE' ? deletable.petId : ids.petId })
      )
      t.ok(plain.status < 500)
      const answer = await store.request(operation.method, pathOf(operation, ids), { headers, body })
      const label = `${operation.operationId} ${JSON.stringify(headers)}`
      // Until the order is cancelled, it prevents the deletion of the pet, and the pet that of the category.
      const { operationId } = operation
      if (['deletePet', 'deleteCategory'].includes(operationId)) t.ok([204, 409].includes(answer.status), label)
      // The account has no limits, and its service sends no attempt.
      else if (/Limits$|^getWebhookAttempt$/.test(operationId)) t.equal(answer.status, 404, label)
      else t.ok(answer.status < 300, `${label}: ${answer.status}`)
      if (operation.method === 'GET') {
        const head = await withKey(store.key!).request('HEAD', pathOf(operation, ids), { headers, body })
        t.equal(head.status, answer.status, `HEAD ${label}`)
      }
    }
  }
})

t.test(
  'a body above the limit is rejected, with or without Content-Length; a body at the limit is accepted',
  async (t) => {
    const { openAccount, port } = await startApp(t, { BODY_LIMIT: '2048' })
    const client = await openAccount()
    const send = sender(client, await stockedStore(client))
    for (const operation of writers) {
      for (const headers of [{}, { 'transfer-encoding': 'chunked' }] as Array<Record<string, string>>) {
        const answer = await send(operation, ' '.repeat(2049), { ...JSON_TYPE, ...headers })
        assertError(t, answer, 413, 'payload_too_large', '2048', `${operation.operationId} ${JSON.stringify(headers)}`)
      }
    }
    const text = JSON.stringify({ message: 'x' }).padEnd(2048)
    for (const headers of [{}, { 'transfer-encoding': 'chunked' }] as Array<Record<string, string>>) {
      t.equal(
        (await client.request('POST', '/messages', { headers: { ...JSON_TYPE, ...headers }, body: text })).status,
        201
      )
    }
    const announced = await sendBytes(
      port,
      'POST /accounts HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n'
    )
    t.match(announced, { status: 413, body: { code: 'payload_too_large' } }, 'before it was sent')
  }
)

t.test('the body of a sign-up has at most 8 KB', async (t) => {
  const { nobody } = await startApp(t)
  const escaped = (text: string): string =>
    text.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
  // The longest texts, in their longest form.
  const text = escaped('😀'.repeat(255))
  const body = `{"name":"${text}","email":"${text}"}`
  const send = async (length: number): Promise<Answer> =>
    await nobody.request('POST', '/accounts', { headers: JSON_TYPE, body: body.padEnd(length) })
  t.equal((await send(MAX_SIGNUP_BYTES)).status, 201)
  assertError(t, await send(MAX_SIGNUP_BYTES + 1), 413, 'payload_too_large', '8192')
})

t.test("a route's own preParsing hooks run after the check of the content type", async (t) => {
  const app = Fastify()
  t.teardown(async () => { await app.close() })
  await app.register(admission)
  await app.register(contentTypeParsers)
  const parsed: string[] = []
  const preParsing: preParsingAsyncHookHandler = async ({ url }) => { parsed.push(url) }
  app.post('/body', { preParsing, schema: { body: {} } }, async ({ body }) => ({ body }))
  app.post('/no-body', { preParsing: [preParsing] }, async ({ body, headers }) => ({ body: body ?? null, headers }))
  const send = async (url: string, type: string): Promise<LightMyRequestResponse> =>
    await app.inject({ method: 'POST', url, headers: { 'content-type': type }, body: '[1]' })
  t.equal((await send('/body', 'text/plain')).statusCode, 400)
  t.same(parsed, [])
  t.same((await send('/body', 'application/json')).json(), { body: [1] })
  t.equal((await send('/no-body', 'application/json')).json().body, null)
  t.equal((await send('/no-body', 'text/plain')).statusCode, 200)
  t.same(parsed, ['/body', '/no-body', '/no-body'])
})
