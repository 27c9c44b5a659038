// Only on SQLite: sends requests that reach no handler.

import t from 'tap'
import type { Answer } from '../support/app.ts'
import { assertError } from '../support/checks.ts'
import { bodyOf, pathOf } from '../support/operations.ts'
import { bodyIds, lists, operations, pathIds, queryIds, store, texts, times } from './request-heads.ts'

/** Fields whose rules are about more than the form of a value, so that not every well-formed value is accepted. */
const RESTRICTED: Record<string, string> = {
  'createFault operation': 'is the name of an operation',
  'advanceClock to': 'is later than the clock'
}

t.test('the tables are not empty', async (t) => {
  for (const [name, table, least] of [
    ['texts', texts, 9],
    ['times', times, 3],
    ['body ids', bodyIds, 3],
    ['path ids', pathIds, 12],
    ['query ids', queryIds, 4],
    ['lists', lists, 6]
  ] as const) {
    t.ok(table.length >= least, `${table.length} ${name}`)
  }
})

t.test('every field rejects text with U+0000 or half of a surrogate pair, and keeps all other text', async (t) => {
  const { call } = await store(t)
  for (const { operation, name, label } of texts) {
    for (const text of ['\u0000', 'a\u0000b', '\ud800', 'a\udc00', '\udc00\ud800', 'ok \ud83d']) {
      assertError(
        t,
        await call(operation, { [name]: text }),
        400,
        'validation_failed',
        new RegExp(`^${name} `),
        `${label} ${JSON.stringify(text)}`
      )
    }
    if (label in RESTRICTED) continue
    const kept = ' é e\u0301 \u0001\u001f"\\/😀\uffff\ufdd0 '
    const answer = await call(operation, { [name]: kept })
    t.ok(answer.status < 300, `${label} keeps every other character: ${answer.text}`)
    t.equal(answer.body[name], kept)
  }
})

t.test('a member named U+0000 or half of a surrogate pair is rejected as unknown', async (t) => {
  const { call } = await store(t)
  for (const operation of operations.filter(({ body }) => body !== undefined)) {
    for (const name of ['\u0000', '\ud800', 'id\u0000']) {
      assertError(
        t,
        await call(operation, { [name]: 'x' }),
        400,
        'validation_failed',
        'is not allowed',
        operation.operationId
      )
    }
  }
})

t.test('text lengths count code points', async (t) => {
  const { call } = await store(t)
  for (const { operation, name, schema: { minLength = 0, maxLength = 0 }, label } of texts) {
    t.ok(maxLength > 0, `${label} has a bound`)
    if (label in RESTRICTED) continue
    const longest = await call(operation, { [name]: '😀'.repeat(maxLength) })
    t.ok(longest.status < 300, `${label} takes ${maxLength}`)
    t.equal(longest.body[name], '😀'.repeat(maxLength))
    assertError(
      t,
      await call(operation, { [name]: '😀'.repeat(maxLength + 1) }),
      400,
      'validation_failed',
      `${name} must have at most ${maxLength}`,
      label
    )
    const shortest = await call(operation, { [name]: 'x'.repeat(minLength) })
    t.ok(shortest.status < 300, `${label} takes ${minLength}`)
    t.equal(shortest.body[name], 'x'.repeat(minLength))
    if (minLength > 0) {
      assertError(
        t,
        await call(operation, { [name]: '' }),
        400,
        'validation_failed',
        `${name} must have at least`,
        label
      )
    }
  }
})

t.test('an id in a body is an integer of at least 1; ids that are never assigned are unknown', async (t) => {
  const { client, ids } = await store(t)
  for (const { operation, name, label } of bodyIds) {
    const send = async (number: string): Promise<Answer> => {
      const text = JSON.stringify(bodyOf(operation, ids, { [name]: 0 })).replace(`"${name}":0`, `"${name}":${number}`)
      return await client.request(operation.method, pathOf(operation, ids), {
        headers: { 'content-type': 'application/json' },
        body: text
      })
    }
    for (const number of [
      '0',
      '-0',
      '-1',
      '-9007199254740993',
      '1.5',
      '1e400',
      '-1e400',
      '1e-400',
      '"1"',
      'true',
      'null',
      '[1]',
      '{}'
    ]) {
      assertError(t, await send(number), 400, 'validation_failed', new RegExp(`^${name} `), `${label} ${number}`)
    }
    for (const number of [
      '9007199254740991',
      '9007199254740992',
      '9007199254740993',
      '9223372036854775807',
      '9223372036854775808',
      '1e300'
    ]) {
      const code = name === 'keyId' ? 'unknown_api_key' : `unknown_${name.replace(/Id$/, '')}`
      assertError(t, await send(number), 409, code, name, `${label} ${number}`)
    }
    const known = ids[name]!
    for (const number of [`${known}.0`, `${known}e0`, `${known}0e-1`]) { t.ok((await send(number)).status < 300, `${label} ${number}`) }
  }
})

t.test('a date-time is RFC 3339 with T and an offset, truncated to milliseconds and returned in UTC', async (t) => {
  const { call } = await store(t)
  const good: Array<[sent: string, answered: string]> = [
    ['2026-11-21T10:00:00Z', '2026-11-21T10:00:00.000Z'],
    ['2026-11-21T10:00:00.1Z', '2026-11-21T10:00:00.100Z'],
    ['2026-11-21T10:00:00.9999999999Z', '2026-11-21T10:00:00.999Z'],
    [`2026-11-21T10:00:00.${'123456789'.repeat(1000)}Z`, '2026-11-21T10:00:00.123Z'],
    ['2026-11-21T10:00:00+02:00', '2026-11-21T08:00:00.000Z'],
    ['2026-11-21T10:00:00-23:59', '2026-11-22T09:59:00.000Z'],
    ['2026-11-21T10:00:00-00:00', '2026-11-21T10:00:00.000Z'],
    ['2026-11-21T23:59:59.999Z', '2026-11-21T23:59:59.999Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'],
    ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000Z'],
    ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
    ['0099-01-01T00:00:00Z', '0099-01-01T00:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['0001-01-01T00:00:00-23:59', '0001-01-01T23:59:00.000Z'],
    ['0000-12-31T23:59:00-00:01', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31T23:59:59.9999Z', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31T23:59:59.999+23:59', '9999-12-31T00:00:59.999Z']
  ]
  const bad = [
    '',
    'now',
    '2026',
    '2026-11-21',
    '2026-11-21T10:00:00',
    '2026-11-21T10:00Z',
    '2026-11-21 10:00:00Z',
    '2026-11-21t10:00:00Z',
    '2026-11-21T10:00:00.Z',
    '2026-11-21T10:00:00,5Z',
    '2026-11-21T10:00:00+0200',
    '2026-11-21T10:00:00+02',
    '2026-11-21T10:00:00+24:00',
    '2026-11-21T10:00:00+02:60',
    '2026-11-21T23:59:60Z',
    '2016-12-31T23:59:60Z',
    '2026-11-21T24:00:00Z',
    '2026-11-21T10:60:00Z',
    '2026-02-29T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '10000-01-01T00:00:00Z',
    '+10000-01-01T00:00:00Z',
    '+002026-11-21T10:00:00Z',
    '-000001-01-01T00:00:00Z',
    '0000-01-01T00:00:00Z',
    '0000-12-31T23:59:59.999Z',
    '0001-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '2026-11-21T10:00:00Z\n',
    ' 2026-11-21T10:00:00Z',
    '2026-11-21T10:00:00Z\u0000'
  ]
  for (const { operation, name, label } of times) {
    for (const [sent, answered] of label in RESTRICTED ? [] : good) {
      const { status, body, text } = await call(operation, { [name]: sent })
      t.ok(status < 300, `${label} ${sent.slice(0, 40)}: ${text}`)
      t.equal(body[name], answered, `${label} ${sent.slice(0, 40)}`)
    }
    for (const sent of [...bad, 0, 1795255200000, true, []]) {
      assertError(
        t,
        await call(operation, { [name]: sent }),
        400,
        'validation_failed',
        new RegExp(`^${name} must be`),
        `${label} ${JSON.stringify(sent)}`
      )
    }
  }
})

t.test('the earliest and the latest date are stored unchanged', async (t) => {
  const { client, ids } = await store(t)
  for (const shipDate of ['0001-01-01T00:00:00.000Z', '0099-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z']) {
    const { body: order } = await client.post('/store/orders', { petId: ids.petId, shipDate })
    t.equal(order.shipDate, shipDate)
    t.same((await client.get(`/store/orders/${order.id}`)).body, order)
    t.same((await client.patch(`/store/orders/${order.id}`, {})).body, order)
  }
})

t.test('a quantity is a whole number, and text is not converted to one', async (t) => {
  const { client, ids } = await store(t)
  const { petId } = ids
  const calls: Array<[method: string, path: string, least: number, body: (quantity: string) => string]> = [
    ['POST', '/store/orders', 1, (quantity) => `{"petId": ${petId}, "quantity": ${quantity}}`],
    ['PATCH', `/inventory/${petId}`, 0, (quantity) => `{"quantity": ${quantity}}`]
  ]
  for (const [method, path, least, body] of calls) {
    const send = async (quantity: string): Promise<Answer> =>
      await client.request(method, path, { headers: { 'content-type': 'application/json' }, body: body(quantity) })
    for (const [quantity, taken] of [['5', 5], ['5.0', 5], ['5e0', 5], ['0.5e1', 5], ['1E+1', 10]] as const) {
      const answer = await send(quantity)
      t.same(
        { ok: answer.status < 300, quantity: answer.body.quantity },
        { ok: true, quantity: taken },
        `${method} ${path} ${quantity}`
      )
    }
    for (const quantity of [
      '"5"',
      '""',
      '5.5',
      '1e400',
      '-1e400',
      '-1',
      '2147483648',
      '9007199254740993',
      '1e300',
      'true',
      'null',
      '[5]',
      '{}',
      String(least - 1)
    ]) {
      assertError(
        t,
        await send(quantity),
        400,
        'validation_failed',
        /^quantity must be/,
        `${method} ${path} ${quantity}`
      )
    }
    for (const quantity of ['05', '+5', '.5', '5.', '0x5', 'NaN', 'Infinity', '-', "'5'"]) {
      assertError(t, await send(quantity), 400, 'invalid_json', 'not valid JSON', `${method} ${path} ${quantity}`)
    }
  }
  const most = await client.patch(`/inventory/${petId}`, { quantity: 2147483647 })
  t.equal(most.body.quantity, 2147483647)
  const { status } = await client.post('/store/orders', { petId, quantity: 2147483647 })
  t.equal(status, 201)
  const none = await client.request('PATCH', `/inventory/${petId}`, {
    headers: { 'content-type': 'application/json' },
    body: '{"quantity": -0}'
  })
  t.equal(none.text, `{"petId":${petId},"quantity":0,"status":"pending"}`)
})

t.test('every operation rejects unknown and read-only body fields', async (t) => {
  const { client, ids, call } = await store(t)
  for (const operation of operations.filter(({ body, mediaType }) =>
    body !== undefined && mediaType === 'application/json')) {
    const readOnly = ['id', 'createdAt', 'apiKey', 'prefix', 'version', 'account_id'].filter(
      (name) => operation.body?.properties?.[name] === undefined
    )
    for (const name of [
      ...readOnly,
      'x',
      '',
      'constructor',
      'toString',
      'hasOwnProperty',
      'prototype',
      'Name',
      ' name'
    ]) {
      assertError(
        t,
        await call(operation, { [name]: 1 }),
        400,
        'validation_failed',
        'is not allowed',
        `${operation.operationId} ${name}`
      )
    }
    for (const member of [
      '"__proto__": 1',
      '"__proto__": {"name": "x"}',
      '"\\u005f_proto__": null',
      '"constructor": {"prototype": {"x": 1}}'
    ]) {
      const text = JSON.stringify(bodyOf(operation, ids, { x9: 0 })).replace('"x9":0', member)
      const answer = await client.request(operation.method, pathOf(operation, ids), {
        headers: { 'content-type': 'application/json' },
        body: text
      })
      assertError(t, answer, 400, 'validation_failed', 'is not allowed', `${operation.operationId} ${member}`)
    }
  }
  t.equal(({} as Record<string, unknown>)['x'], undefined, 'no prototype was touched')
})
