// Only on SQLite: checks the validation of requests.

import t from 'tap'
import type { Answer } from '../support/app.ts'
import { assertError } from '../support/checks.ts'
import { bodyOf, pathOf } from '../support/operations.ts'
import { lists, operations, pathIds, queryIds, store } from '../plugins/request-heads.ts'

/** Invalid ids in a path or query, percent-encoded: not decimal digits from 1 to 2^63-1. */
const NO_IDS = [
  '0',
  '-1',
  '9223372036854775808',
  '18446744073709551617',
  '1e3',
  '01',
  '+1',
  '%2B1',
  '%00',
  '1%00',
  '1.0',
  '1.5',
  '0x1',
  '%201',
  '1%20',
  'x',
  'NaN',
  'Infinity',
  'null',
  '%EF%BC%91',
  '1,2',
  '9'.repeat(400)
]
/** Valid ids that are never assigned. */
const UNKNOWN_IDS = ['9007199254740991', '9007199254740992', '9007199254740993', '9223372036854775807']

t.test('a path id is decimal digits from 1 to 2^63-1', async (t) => {
  const { client, ids } = await store(t)
  for (const { operation, name, label } of pathIds) {
    const at = async (id: string): Promise<Answer> =>
      await client.request(operation.method, pathOf(operation, { ...ids, [name]: id }), {
        body: bodyOf(operation, ids)
      })
    for (const id of NO_IDS) { assertError(t, await at(id), 400, 'validation_failed', `Path parameter ${name}`, `${label} ${id.slice(0, 30)}`) }
    for (const id of UNKNOWN_IDS) t.equal((await at(id)).status, 404, `${label} ${id}`)
  }
})

t.test('a percent-encoded digit equals the digit', async (t) => {
  const { client, ids } = await store(t)
  // The store has no attempt, because its service does not deliver.
  const found = pathIds.filter(({ operation: { method, operationId } }) =>
    method === 'GET' && operationId !== 'getWebhookAttempt')
  for (const { operation, name, label } of found) {
    const plain = await client.get(pathOf(operation, ids))
    const encoded = [...String(ids[name])].map((digit) => `%3${digit}`).join('')
    const answer = await client.get(pathOf(operation, { ...ids, [name]: encoded }))
    t.same({ status: answer.status, body: answer.body }, { status: 200, body: plain.body }, label)
  }
  t.equal((await client.get('/pets?limit=%35')).status, 200)
})

t.test('a message id has its own format', async (t) => {
  const { client } = await store(t)
  for (const id of [
    '1',
    'msg_',
    `msg_${'0'.repeat(25)}`,
    `msg_${'0'.repeat(27)}`,
    `msg_${'A'.repeat(26)}`,
    `MSG_${'0'.repeat(26)}`,
    `msg_${'0'.repeat(26)}%0A`,
    '%00',
    `msg_${'%00'.repeat(26)}`
  ]) {
    assertError(t, await client.get(`/messages/${id}`), 400, 'validation_failed', 'Path parameter messageId', id)
  }
  assertError(t, await client.get(`/messages/msg_${'0'.repeat(26)}`), 404, 'message_not_found')
})

t.test('a query id is decimal digits from 1 to 2^63-1, and an unknown id matches nothing', async (t) => {
  const { client, ids } = await store(t)
  for (const { operation, name, label } of queryIds) {
    for (const id of ['', ...NO_IDS]) {
      assertError(
        t,
        await client.get(`${operation.path}?${name}=${id}`),
        400,
        'validation_failed',
        `Query parameter ${name}`,
        `${label} ${id.slice(0, 30)}`
      )
    }
    for (const id of UNKNOWN_IDS) {
      const { status, body } = await client.get(`${operation.path}?${name}=${id}`)
      t.same({ status, body }, { status: 200, body: [] }, `${label} ${id}`)
    }
    // The key of the fixture has sent no request.
    if (operation.operationId === 'listRequests') continue
    const known = name === 'id' ? ids.petId : ids[name]!
    t.equal((await client.get(`${operation.path}?${name}=${known}`)).body.length, 1, label)
  }
})

t.test('a position in the feed is decimal digits from 0 to 2^63-1', async (t) => {
  const { client } = await store(t)
  for (const after of ['', ...NO_IDS.filter((id) => id !== '0')]) {
    assertError(
      t,
      await client.get(`/events?after=${after}`),
      400,
      'validation_failed',
      'Query parameter after',
      `after ${after.slice(0, 30)}`
    )
  }
  for (const after of UNKNOWN_IDS) {
    const { status, body } = await client.get(`/events?after=${after}`)
    t.same({ status, body }, { status: 200, body: [] }, `after ${after}`)
  }
  t.equal((await client.get('/events?after=0')).body[0].id, 1)
})

t.test('a limit is a number from 1 to 100, given once', async (t) => {
  const { client, ids } = await store(t)
  for (const list of lists) {
    const path = pathOf(list, ids)
    for (const query of [
      'limit=0',
      'limit=101',
      'limit=Infinity',
      'limit=-Infinity',
      'limit=NaN',
      'limit=',
      'limit',
      'limit=1.0',
      'limit=05',
      'limit=+5',
      'limit=-1',
      'limit=1e1',
      'limit=0x5',
      'limit=%205',
      'limit=5%00',
      'limit=true',
      'limit=9223372036854775807',
      'limit=9223372036854775808',
      'limit=5&limit=5',
      'limit=5&limit=6',
      'limit[]=5',
      'limit[0]=5'
    ]) {
      assertError(
        t,
        await client.get(`${path}?${query}`),
        400,
        'validation_failed',
        'uery parameter',
        `${path}?${query}`
      )
    }
    for (const limit of [1, 100]) { t.equal((await client.get(`${path}?limit=${limit}`)).status, 200, `${path}?limit=${limit}`) }
  }
})

t.test('every cursor of the documented form is accepted, with any filter and order', async (t) => {
  const { client, ids } = await store(t)
  const filters: Record<string, string[]> = {
    '/pets': [
      '',
      'status=sold',
      `categoryId=${ids.categoryId}`,
      `id=${ids.petId}`,
      `id=${ids.petId}&id=9007199254740993&status=available&categoryId=1`
    ],
    '/store/orders': ['', `petId=${ids.petId}`, 'complete=true', `petId=${ids.petId}&complete=false`],
    '/inventory': ['', 'status=pending', `petId=${ids.petId}&petId=5`]
  }
  // The feed of events is paged by the number of an event, `after`.
  for (const list of lists.filter(({ parameters }) => parameters.some(({ name }) => name === 'cursor'))) {
    const { parameters } = list
    const path = pathOf(list, ids)
    const orders = parameters.some(({ name }) => name === 'sort') ? ['', 'sort=id', 'sort=-id'] : ['']
    for (const filter of filters[path] ?? ['']) {
      for (const order of orders) {
        const queries = ['0', '1', 'a', 'k', '00', '00000000000', 'gjdgxs', 'zzzzzzzzzzz'].map((cursor) =>
          [filter, order, `cursor=${cursor}`].filter((part) => part !== '').join('&')
        )
        const answers = await Promise.all(queries.map(async (query) => await client.get(`${path}?${query}`)))
        t.same(
          answers.map(({ status }) => status),
          queries.map(() => 200),
          `${path} ${filter} ${order}`
        )
      }
    }
    for (const query of [
      'cursor=',
      'cursor',
      'cursor=A',
      'cursor=-1',
      'cursor=1.5',
      'cursor=zzzzzzzzzzzz',
      'cursor=%00',
      'cursor=k%0A',
      'cursor=%C3%A4',
      'cursor=1&cursor=2',
      'cursor=1&cursor=1',
      'cursor[]=1'
    ]) {
      assertError(
        t,
        await client.get(`${path}?${query}`),
        400,
        'validation_failed',
        'uery parameter',
        `${path}?${query}`
      )
    }
  }
})

t.test('an invalid sort order, filter or flag is rejected', async (t) => {
  const { client } = await store(t)
  for (const path of [
    ...['', 'ID', 'name', '%2Bid', '-ID', 'id&sort=id', 'id&sort=-id'].map((sort) => `/pets?sort=${sort}`),
    '/inventory?sort=id',
    '/account/keys?sort=label',
    ...['', 'Sold', 'gone', 'sold&status=sold', 'sold&status=pending', '%00', 'null'].map(
      (status) => `/pets?status=${status}`
    ),
    '/inventory?status=gone',
    '/pets?categoryId=1&categoryId=2',
    '/store/orders?petId=1&petId=2',
    ...['', '1', '0', 'TRUE', 'yes', 'null', 'true&complete=false', '%74rue%00'].map(
      (flag) => `/store/orders?complete=${flag}`
    ),
    `/pets?${'id=1&'.repeat(101)}`,
    `/inventory?${'petId=1&'.repeat(101)}`
  ]) {
    assertError(t, await client.get(path), 400, 'validation_failed', 'uery parameter', path.slice(0, 60))
  }
  t.equal((await client.get(`/pets?${'id=1&'.repeat(100)}`)).status, 200, 'a hundred ids')
  t.equal((await client.get('/store/orders?complete=%74rue')).status, 200)
})

t.test('every operation rejects unknown query parameters', async (t) => {
  const { client, ids } = await store(t)
  for (const operation of operations) {
    for (const name of [
      'x',
      'Limit',
      'page',
      '__proto__',
      'constructor',
      'toString',
      '%00',
      ''
    ]) {
      const answer = await client.request(operation.method, `${pathOf(operation, ids)}?${name}=1`, {
        body: bodyOf(operation, ids)
      })
      assertError(t, answer, 400, 'validation_failed', 'is not allowed', `${operation.operationId} ?${name}=1`)
    }
  }
  for (const list of lists) {
    t.equal((await client.request(list.method, `${pathOf(list, ids)}?`)).status, 200, 'an empty query is none')
  }
})

t.test('a message repeats the beginning of a long unknown name only', async (t) => {
  const { client } = await store(t)
  const name = 'x'.repeat(5_000)
  for (const answer of [
    await client.post('/pets', { name: 'Rex', categoryId: 1, [name]: 1 }),
    await client.get(`/pets?${name}=1`)
  ]) {
    assertError(t, answer, 400, 'validation_failed', `"${name.slice(0, 40)}…" is not allowed`)
    t.ok(answer.text.length < 200, answer.text)
  }
})
