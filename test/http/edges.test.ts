import t, { type Test } from 'tap'
import type { Answer, Client } from '../support/app.ts'
import { startApp } from '../support/app.ts'
import { refused } from '../support/checks.ts'
import { bodyOf, operationsOf, pathOf, stockedStore, type Ids, type Operation } from '../support/operations.ts'

// Thousands of requests, one after the other, on machines that have other things to do.
t.setTimeout(300_000)

// Every value that a path, a query or a body can hold at the edge of its type. The tables of fields come
// from the document, so that what is added to it is tested as well.

const operations = operationsOf((await startApp(t)).app)

/** A service with a store for each test, and calls of operations on it. */
async function store (t: Test): Promise<{ client: Client, ids: Ids, call: (operation: Operation, fields?: Record<string, unknown>) => Promise<Answer> }> {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  const ids = await stockedStore(client)
  return {
    client,
    ids,
    call: async (operation, fields) => await client.request(operation.method, pathOf(operation, ids), { body: bodyOf(operation, ids, fields) })
  }
}

/** The fields of all bodies that `wanted` picks. */
function fields (wanted: (schema: NonNullable<NonNullable<Operation['body']>['properties']>[string]) => boolean) {
  return operations.flatMap((operation) => Object.entries(operation.body?.properties ?? {})
    .filter(([, schema]) => wanted(schema))
    .map(([name, schema]) => ({ operation, name, schema, label: `${operation.operationId} ${name}` })))
}

/** The parameters of all operations that `wanted` picks. */
function parameters (wanted: (parameter: Operation['parameters'][number]) => boolean) {
  return operations.flatMap((operation) => operation.parameters.filter(wanted)
    .map((parameter) => ({ operation, ...parameter, label: `${operation.operationId} ${parameter.name}` })))
}

const texts = fields(({ type, format, enum: values }) => type === 'string' && format === undefined && values === undefined)
const times = fields(({ format }) => format === 'date-time')
const bodyIds = fields(({ format }) => format === 'int64')
const pathIds = parameters(({ in: place, schema }) => place === 'path' && schema.format === 'int64')
const queryIds = parameters(({ in: place, schema }) => place === 'query' && (schema.items ?? schema).format === 'int64' && (schema.items ?? schema).minimum === 1)
const lists = operations.filter(({ method, parameters }) => method === 'GET' && parameters.some(({ name }) => name === 'limit'))

t.test('the tables are not empty', async (t) => {
  for (const [name, table, least] of [
    ['texts', texts, 9], ['times', times, 3], ['body ids', bodyIds, 3], ['path ids', pathIds, 12], ['query ids', queryIds, 4], ['lists', lists, 6]
  ] as const) {
    t.ok(table.length >= least, `${table.length} ${name}`)
  }
})

t.test('text with U+0000 or half of a surrogate pair is refused in every field, and everything else is kept', async (t) => {
  const { call } = await store(t)
  for (const { operation, name, label } of texts) {
    for (const text of ['\u0000', 'a\u0000b', '\ud800', 'a\udc00', '\udc00\ud800', 'ok \ud83d']) {
      refused(t, await call(operation, { [name]: text }), 400, 'validation_failed', new RegExp(`^${name} `), `${label} ${JSON.stringify(text)}`)
    }
    const kept = ' é e\u0301 \u0001\u001f"\\/😀\uffff\ufdd0 '
    const answer = await call(operation, { [name]: kept })
    t.ok(answer.status < 300, `${label} keeps every other character: ${answer.text}`)
    t.equal(answer.body[name], kept)
  }
})

t.test('a member that is named U+0000 or half of a surrogate pair is unknown', async (t) => {
  const { call } = await store(t)
  for (const operation of operations.filter(({ body }) => body !== undefined)) {
    for (const name of ['\u0000', '\ud800', 'id\u0000']) {
      refused(t, await call(operation, { [name]: 'x' }), 400, 'validation_failed', 'is not known here', operation.operationId)
    }
  }
})

t.test('lengths of text are counted in code points', async (t) => {
  const { call } = await store(t)
  for (const { operation, name, schema: { minLength = 0, maxLength = 0 }, label } of texts) {
    t.ok(maxLength > 0, `${label} has a bound`)
    const longest = await call(operation, { [name]: '😀'.repeat(maxLength) })
    t.ok(longest.status < 300, `${label} takes ${maxLength}`)
    t.equal(longest.body[name], '😀'.repeat(maxLength))
    refused(t, await call(operation, { [name]: '😀'.repeat(maxLength + 1) }), 400, 'validation_failed', `${name} must have at most ${maxLength}`, label)
    const shortest = await call(operation, { [name]: 'x'.repeat(minLength) })
    t.ok(shortest.status < 300, `${label} takes ${minLength}`)
    t.equal(shortest.body[name], 'x'.repeat(minLength))
    if (minLength > 0) refused(t, await call(operation, { [name]: '' }), 400, 'validation_failed', `${name} must have at least`, label)
  }
})

/** Of a path or query id: not decimal digits from 1 to 2^63-1, in the spelling of an address. */
const NO_IDS = [
  '0', '-1', '9223372036854775808', '18446744073709551617', '1e3', '01', '+1', '%2B1', '%00', '1%00', '1.0', '1.5', '0x1', '%201', '1%20',
  'x', 'NaN', 'Infinity', 'null', '%EF%BC%91', '1,2', '9'.repeat(400)
]
/** Ids, but never assigned. */
const UNKNOWN_IDS = ['9007199254740991', '9007199254740992', '9007199254740993', '9223372036854775807']

t.test('a path id is decimal digits from 1 to 2^63-1', async (t) => {
  const { client, ids } = await store(t)
  for (const { operation, name, label } of pathIds) {
    const at = async (id: string): Promise<Answer> =>
      await client.request(operation.method, pathOf(operation, { ...ids, [name]: id }), { body: bodyOf(operation, ids) })
    for (const id of NO_IDS) refused(t, await at(id), 400, 'validation_failed', `Path parameter ${name}`, `${label} ${id.slice(0, 30)}`)
    for (const id of UNKNOWN_IDS) t.equal((await at(id)).status, 404, `${label} ${id}`)
  }
})

t.test('a percent-encoded digit is the digit', async (t) => {
  const { client, ids } = await store(t)
  for (const { operation, name, label } of pathIds.filter(({ operation: { method } }) => method === 'GET')) {
    const plain = await client.get(pathOf(operation, ids))
    const encoded = [...String(ids[name as keyof Ids])].map((digit) => `%3${digit}`).join('')
    const answer = await client.get(pathOf(operation, { ...ids, [name]: encoded }))
    t.same({ status: answer.status, body: answer.body }, { status: 200, body: plain.body }, label)
  }
  t.equal((await client.get('/pets?limit=%35')).status, 200)
})

t.test('a message id has its own form', async (t) => {
  const { client } = await store(t)
  for (const id of ['1', 'msg_', `msg_${'0'.repeat(25)}`, `msg_${'0'.repeat(27)}`, `msg_${'A'.repeat(26)}`, `MSG_${'0'.repeat(26)}`, `msg_${'0'.repeat(26)}%0A`, '%00', `msg_${'%00'.repeat(26)}`]) {
    refused(t, await client.get(`/messages/${id}`), 400, 'validation_failed', 'Path parameter messageId', id)
  }
  refused(t, await client.get(`/messages/msg_${'0'.repeat(26)}`), 404, 'message_not_found')
})

t.test('a query id is decimal digits from 1 to 2^63-1, and matches nothing when there is no such record', async (t) => {
  const { client, ids } = await store(t)
  for (const { operation, name, label } of queryIds) {
    for (const id of ['', ...NO_IDS]) {
      refused(t, await client.get(`${operation.path}?${name}=${id}`), 400, 'validation_failed', `Query parameter ${name}`, `${label} ${id.slice(0, 30)}`)
    }
    for (const id of UNKNOWN_IDS) {
      const { status, body } = await client.get(`${operation.path}?${name}=${id}`)
      t.same({ status, body }, { status: 200, body: [] }, `${label} ${id}`)
    }
    const known = name === 'id' ? ids.petId : ids[name as keyof Ids]
    t.equal((await client.get(`${operation.path}?${name}=${known}`)).body.length, 1, label)
  }
})

t.test('a position in the feed is decimal digits from 0 to 2^63-1', async (t) => {
  const { client } = await store(t)
  for (const after of ['', ...NO_IDS.filter((id) => id !== '0')]) {
    refused(t, await client.get(`/events?after=${after}`), 400, 'validation_failed', 'Query parameter after', `after ${after.slice(0, 30)}`)
  }
  for (const after of UNKNOWN_IDS) {
    const { status, body } = await client.get(`/events?after=${after}`)
    t.same({ status, body }, { status: 200, body: [] }, `after ${after}`)
  }
  t.equal((await client.get('/events?after=0')).body[0].id, 1)
})

t.test('a body id is an integer from 1 on; what is larger than any id is unknown', async (t) => {
  const { client, ids } = await store(t)
  for (const { operation, name, label } of bodyIds) {
    const send = async (number: string): Promise<Answer> => {
      const text = JSON.stringify(bodyOf(operation, ids, { [name]: 0 })).replace(`"${name}":0`, `"${name}":${number}`)
      return await client.request(operation.method, pathOf(operation, ids), { headers: { 'content-type': 'application/json' }, body: text })
    }
    for (const number of ['0', '-0', '-1', '-9007199254740993', '1.5', '1e400', '-1e400', '1e-400', '"1"', 'true', 'null', '[1]', '{}']) {
      refused(t, await send(number), 400, 'validation_failed', new RegExp(`^${name} `), `${label} ${number}`)
    }
    for (const number of ['9007199254740991', '9007199254740992', '9007199254740993', '9223372036854775807', '9223372036854775808', '1e300']) {
      refused(t, await send(number), 409, name === 'petId' ? 'unknown_pet' : 'unknown_category', name, `${label} ${number}`)
    }
    const known = ids[name as keyof Ids]
    for (const number of [`${known}.0`, `${known}e0`, `${known}0e-1`]) t.ok((await send(number)).status < 300, `${label} ${number}`)
  }
})

t.test('a date-time is RFC 3339 with T and an offset, cut to milliseconds, answered in UTC', async (t) => {
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
    '', 'now', '2026', '2026-11-21', '2026-11-21T10:00:00', '2026-11-21T10:00Z', '2026-11-21 10:00:00Z', '2026-11-21t10:00:00Z',
    '2026-11-21T10:00:00.Z', '2026-11-21T10:00:00,5Z', '2026-11-21T10:00:00+0200', '2026-11-21T10:00:00+02', '2026-11-21T10:00:00+24:00',
    '2026-11-21T10:00:00+02:60', '2026-11-21T23:59:60Z', '2016-12-31T23:59:60Z', '2026-11-21T24:00:00Z', '2026-11-21T10:60:00Z',
    '2026-02-29T00:00:00Z', '2026-02-30T00:00:00Z', '1900-02-29T00:00:00Z', '2026-04-31T00:00:00Z', '2026-00-01T00:00:00Z', '2026-13-01T00:00:00Z', '2026-01-00T00:00:00Z',
    '10000-01-01T00:00:00Z', '+10000-01-01T00:00:00Z', '+002026-11-21T10:00:00Z', '-000001-01-01T00:00:00Z', '0000-01-01T00:00:00Z',
    '0000-12-31T23:59:59.999Z', '0001-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01', '2026-11-21T10:00:00Z\n', ' 2026-11-21T10:00:00Z', '2026-11-21T10:00:00Z\u0000'
  ]
  for (const { operation, name, label } of times) {
    for (const [sent, answered] of good) {
      const { status, body, text } = await call(operation, { [name]: sent })
      t.ok(status < 300, `${label} ${sent.slice(0, 40)}: ${text}`)
      t.equal(body[name], answered, `${label} ${sent.slice(0, 40)}`)
    }
    for (const sent of [...bad, 0, 1795255200000, true, []]) {
      refused(t, await call(operation, { [name]: sent }), 400, 'validation_failed', new RegExp(`^${name} must be`), `${label} ${JSON.stringify(sent)}`)
    }
  }
})

t.test('dates at both ends are read back as they were answered', async (t) => {
  const { client, ids } = await store(t)
  for (const shipDate of ['0001-01-01T00:00:00.000Z', '0099-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z']) {
    const { body: order } = await client.post('/store/orders', { petId: ids.petId, shipDate })
    t.equal(order.shipDate, shipDate)
    t.same((await client.get(`/store/orders/${order.id}`)).body, order)
    t.same((await client.patch(`/store/orders/${order.id}`, {})).body, order)
  }
})

t.test('a quantity is a whole number, and no text is taken for one', async (t) => {
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
      t.same({ ok: answer.status < 300, quantity: answer.body.quantity }, { ok: true, quantity: taken }, `${method} ${path} ${quantity}`)
    }
    for (const quantity of ['"5"', '""', '5.5', '1e400', '-1e400', '-1', '2147483648', '9007199254740993', '1e300', 'true', 'null', '[5]', '{}', String(least - 1)]) {
      refused(t, await send(quantity), 400, 'validation_failed', /^quantity must be/, `${method} ${path} ${quantity}`)
    }
    for (const quantity of ['05', '+5', '.5', '5.', '0x5', 'NaN', 'Infinity', '-', "'5'"]) {
      refused(t, await send(quantity), 400, 'invalid_json', 'not valid JSON', `${method} ${path} ${quantity}`)
    }
  }
  const most = await client.patch(`/inventory/${petId}`, { quantity: 2147483647 })
  t.equal(most.body.quantity, 2147483647)
  const { status } = await client.post('/store/orders', { petId, quantity: 2147483647 })
  t.equal(status, 201)
  const none = await client.request('PATCH', `/inventory/${petId}`, { headers: { 'content-type': 'application/json' }, body: '{"quantity": -0}' })
  t.equal(none.text, `{"petId":${petId},"quantity":0,"status":"pending"}`)
})

t.test('a limit is 1 to 100, once', async (t) => {
  const { client } = await store(t)
  for (const { path } of lists) {
    for (const query of [
      'limit=0', 'limit=101', 'limit=Infinity', 'limit=-Infinity', 'limit=NaN', 'limit=', 'limit', 'limit=1.0', 'limit=05', 'limit=+5', 'limit=-1', 'limit=1e1', 'limit=0x5',
      'limit=%205', 'limit=5%00', 'limit=true', 'limit=9223372036854775807', 'limit=9223372036854775808', 'limit=5&limit=5', 'limit=5&limit=6', 'limit[]=5', 'limit[0]=5'
    ]) {
      refused(t, await client.get(`${path}?${query}`), 400, 'validation_failed', 'uery parameter', `${path}?${query}`)
    }
    for (const limit of [1, 100]) t.equal((await client.get(`${path}?limit=${limit}`)).status, 200, `${path}?limit=${limit}`)
  }
})

t.test('every cursor of the documented form is accepted, with any filter and order', async (t) => {
  const { client, ids } = await store(t)
  const filters: Record<string, string[]> = {
    '/pets': ['', 'status=sold', `categoryId=${ids.categoryId}`, `id=${ids.petId}`, `id=${ids.petId}&id=9007199254740993&status=available&categoryId=1`],
    '/store/orders': ['', `petId=${ids.petId}`, 'complete=true', `petId=${ids.petId}&complete=false`],
    '/inventory': ['', 'status=pending', `petId=${ids.petId}&petId=5`]
  }
  // The feed of events is walked by numbers, `after`.
  for (const { path, parameters } of lists.filter(({ parameters }) => parameters.some(({ name }) => name === 'cursor'))) {
    const orders = parameters.some(({ name }) => name === 'sort') ? ['', 'sort=id', 'sort=-id'] : ['']
    for (const filter of filters[path] ?? ['']) {
      for (const order of orders) {
        const queries = ['0', '1', 'a', 'k', '00', '0000000000', 'gjdgxs', 'zzzzzzzzzz']
          .map((cursor) => [filter, order, `cursor=${cursor}`].filter((part) => part !== '').join('&'))
        const answers = await Promise.all(queries.map(async (query) => await client.get(`${path}?${query}`)))
        t.same(answers.map(({ status }) => status), queries.map(() => 200), `${path} ${filter} ${order}`)
      }
    }
    for (const query of ['cursor=', 'cursor', 'cursor=A', 'cursor=-1', 'cursor=1.5', 'cursor=zzzzzzzzzzz', 'cursor=%00', 'cursor=k%0A', 'cursor=%C3%A4', 'cursor=1&cursor=2', 'cursor=1&cursor=1', 'cursor[]=1']) {
      refused(t, await client.get(`${path}?${query}`), 400, 'validation_failed', 'uery parameter', `${path}?${query}`)
    }
  }
})

t.test('an order, a filter or a flag of another kind is refused', async (t) => {
  const { client } = await store(t)
  for (const path of [
    ...['', 'ID', 'name', '%2Bid', '-ID', 'id&sort=id', 'id&sort=-id'].map((sort) => `/pets?sort=${sort}`),
    '/inventory?sort=id', '/account/keys?sort=label',
    ...['', 'Sold', 'gone', 'sold&status=sold', 'sold&status=pending', '%00', 'null'].map((status) => `/pets?status=${status}`),
    '/inventory?status=gone', '/pets?categoryId=1&categoryId=2', '/store/orders?petId=1&petId=2',
    ...['', '1', '0', 'TRUE', 'yes', 'null', 'true&complete=false', '%74rue%00'].map((flag) => `/store/orders?complete=${flag}`),
    `/pets?${'id=1&'.repeat(101)}`, `/inventory?${'petId=1&'.repeat(101)}`
  ]) {
    refused(t, await client.get(path), 400, 'validation_failed', 'uery parameter', path.slice(0, 60))
  }
  t.equal((await client.get(`/pets?${'id=1&'.repeat(100)}`)).status, 200, 'a hundred ids')
  t.equal((await client.get('/store/orders?complete=%74rue')).status, 200)
})

t.test('a query parameter that an operation does not know is refused by every operation', async (t) => {
  const { client, ids } = await store(t)
  for (const operation of operations) {
    for (const name of ['x', 'Limit', 'page', '__proto__', 'constructor', 'toString', '%00', '%ED%A0%80', '%', '%zz', '']) {
      const answer = await client.request(operation.method, `${pathOf(operation, ids)}?${name}=1`, { body: bodyOf(operation, ids) })
      refused(t, answer, 400, 'validation_failed', 'is not known here', `${operation.operationId} ?${name}=1`)
    }
  }
  for (const { method, path } of lists) t.equal((await client.request(method, `${path}?`)).status, 200, 'an empty query is none')
})

t.test('a body field that an operation does not know, or only answers, is refused by every operation', async (t) => {
  const { client, ids, call } = await store(t)
  for (const operation of operations.filter(({ body }) => body !== undefined)) {
    const readOnly = ['id', 'createdAt', 'apiKey', 'prefix', 'version', 'account_id'].filter((name) => operation.body?.properties?.[name] === undefined)
    for (const name of [...readOnly, 'x', '', 'constructor', 'toString', 'hasOwnProperty', 'prototype', 'Name', ' name']) {
      refused(t, await call(operation, { [name]: 1 }), 400, 'validation_failed', 'is not known here', `${operation.operationId} ${name}`)
    }
    for (const member of ['"__proto__": 1', '"__proto__": {"name": "x"}', '"\\u005f_proto__": null', '"constructor": {"prototype": {"x": 1}}']) {
      const text = JSON.stringify(bodyOf(operation, ids)).replace('{', '{"x9":0,').replace('"x9":0', member).replace(',}', '}')
      const answer = await client.request(operation.method, pathOf(operation, ids), { headers: { 'content-type': 'application/json' }, body: text })
      refused(t, answer, 400, 'validation_failed', 'is not known here', `${operation.operationId} ${member}`)
    }
  }
  t.equal(({} as Record<string, unknown>)['x'], undefined, 'no prototype was touched')
})
