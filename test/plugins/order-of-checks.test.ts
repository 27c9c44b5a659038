// Only on SQLite: hooks and `decide` give the order; the tests of conditions and idempotency run the statements.

import t from 'tap'
import { startApp } from '../support/app.ts'
import { readerOf, assertError } from '../support/checks.ts'
import { bodyOf, operationsOf, pathOf, READING_POSTS, stockedStore } from '../support/operations.ts'

// A request with two errors gets the first of them, in the contract's order of checks.

const JSON_TYPE = { 'content-type': 'application/json', 'content-length': '1' }

t.test('the key is checked before the rest of the request', async (t) => {
  const { app, openAccount, nobody } = await startApp(t, { BODY_LIMIT: '1024' })
  const ids = await stockedStore(await openAccount())
  for (const operation of operationsOf(app)) {
    if (operation.operationId === 'createAccount') continue
    const path = operation.path.replace(/\{\w+\}/, 'x')
    const send = async (headers: Record<string, string>, body: string) =>
      await nobody.request(operation.method, `${path}?x=1`, { headers: { 'idempotency-key': '', ...headers }, body })
    assertError(t, await send(JSON_TYPE, '{'), 401, 'unauthorized', /\w/, operation.operationId)
    assertError(
      t,
      await send({ 'content-type': 'text/plain', 'content-encoding': 'gzip', 'content-length': '1' }, 'x'),
      401,
      'unauthorized'
    )
    assertError(
      t,
      await send({ 'content-type': 'application/json', 'content-length': '2000' }, ' '.repeat(2000)),
      401,
      'unauthorized'
    )
    assertError(
      t,
      await nobody.request(operation.method, pathOf(operation, ids), { body: bodyOf(operation, ids) }),
      401,
      'unauthorized'
    )
  }
})

t.test('a write with a read-only key is rejected before the rest of the request is checked', async (t) => {
  const { app, openAccount, withKey } = await startApp(t, { BODY_LIMIT: '1024' })
  const reader = await readerOf(await openAccount(), withKey)
  for (const { operationId, method, path } of operationsOf(app)) {
    if (method === 'GET' || [...READING_POSTS, 'createAccount'].includes(operationId)) continue
    const at = `${path.replace(/\{\w+\}/, 'x')}?x=1`
    for (const [headers, body] of [
      [JSON_TYPE, '{'],
      [{ 'content-length': '1' }, 'x'],
      [{ 'content-type': 'application/json', 'content-length': '2000' }, ' '.repeat(2000)]
    ] as const) {
      assertError(
        t,
        await reader.request(method, at, { headers: { ...headers, 'idempotency-key': '' }, body }),
        403,
        'read_only_key',
        /\w/,
        operationId
      )
    }
  }
})

t.test('the body is parsed before path, query and fields are validated', async (t) => {
  const { openAccount } = await startApp(t, { BODY_LIMIT: '1024' })
  const client = await openAccount()
  const send = async (headers: Record<string, string>, body: string) =>
    await client.request('PATCH', '/pets/x?x=1', { headers: { 'idempotency-key': '', ...headers }, body })
  assertError(t, await send({ 'content-type': 'application/json' }, ' '.repeat(2000)), 413, 'payload_too_large')
  assertError(t, await send({ 'content-type': 'text/plain' }, 'x'), 400, 'invalid_content_type')
  assertError(t, await send({ 'content-type': 'application/json' }, '{'), 400, 'invalid_json')
})

t.test('headers are validated before the path, the path before the query, the query before the body', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  const body = { unknown: 1 }
  assertError(
    t,
    await client.request('PATCH', '/pets/x?x=1', { headers: { 'idempotency-key': '' }, body }),
    400,
    'validation_failed',
    'Idempotency-Key'
  )
  assertError(
    t,
    await client.request('PATCH', '/pets/x?x=1', { body }),
    400,
    'validation_failed',
    'Path parameter petId'
  )
  assertError(
    t,
    await client.request('PATCH', '/pets/1?x=1', { body }),
    400,
    'validation_failed',
    'Query parameter "x"'
  )
  assertError(t, await client.request('PATCH', '/pets/1', { body }), 400, 'validation_failed', '"unknown"')
  assertError(
    t,
    await client.get('/events?x=1', { accept: 'text/event-stream', 'last-event-id': 'x' }),
    400,
    'validation_failed',
    'Last-Event-ID'
  )
})

t.test('every operation with a body validates its query first', async (t) => {
  const { app, openAccount } = await startApp(t)
  const client = await openAccount()
  const ids = await stockedStore(client)
  for (const operation of operationsOf(app)) {
    if (operation.body === undefined) continue
    assertError(
      t,
      await client.request(operation.method, `${pathOf(operation, ids)}?x=1`, { body: { unknown: 1 } }),
      400,
      'validation_failed',
      'Query parameter "x"',
      operation.operationId
    )
  }
})

t.test('validation comes before a sunset, a sunset before a missing record', async (t) => {
  const { openAccount } = await startApp(t, { PET_READ_SUNSET: '2025-12-05' })
  const client = await openAccount()
  assertError(t, await client.get('/pets/x'), 400, 'validation_failed')
  assertError(t, await client.get('/pets/1?x=1'), 400, 'validation_failed')
  assertError(t, await client.get('/pets/1'), 410, 'operation_sunset')
})

t.test('a missing record comes before a failed condition, a failed condition before a conflict', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  const { petId, categoryId, orderId } = await stockedStore(client)
  const stale = { 'if-match': '"0"' }
  for (const [path, code] of [
    ['/pets', 'pet_not_found'],
    ['/categories', 'category_not_found'],
    ['/store/orders', 'order_not_found'],
    ['/inventory', 'pet_not_found']
  ] as const) {
    const body = path === '/inventory' ? { quantity: 1 } : {}
    assertError(t, await client.patch(`${path}/4711`, body, stale), 404, code)
    if (path !== '/inventory') assertError(t, await client.delete(`${path}/4711`, stale), 404, code)
  }
  await client.patch(`/pets/${petId}`, { status: 'sold' })
  const conflicts: Array<[method: string, path: string, body: object | undefined, code: string]> = [
    ['PATCH', `/pets/${petId}`, { status: 'available' }, 'invalid_status_transition'],
    ['PATCH', `/pets/${petId}`, { categoryId: 4711 }, 'unknown_category'],
    ['DELETE', `/pets/${petId}`, undefined, 'pet_in_use'],
    ['DELETE', `/categories/${categoryId}`, undefined, 'category_in_use']
  ]
  for (const [method, path, body, code] of conflicts) {
    assertError(t, await client.request(method, path, { headers: stale, body }), 412, 'precondition_failed')
    assertError(t, await client.request(method, path, { body }), 409, code)
  }
  await client.patch(`/store/orders/${orderId}`, { complete: true })
  assertError(t, await client.delete(`/store/orders/${orderId}`, stale), 412, 'precondition_failed')
  assertError(t, await client.delete(`/store/orders/${orderId}`), 409, 'order_already_shipped')
})

t.test('an Idempotency-Key is looked up before the record', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  const { body: category } = await client.post('/categories', { name: 'Dogs' })
  const key = { 'idempotency-key': 'once' }
  t.equal((await client.delete(`/categories/${category.id}`, key)).status, 204)
  const replay = await client.delete(`/categories/${category.id}`, { ...key, 'if-match': '"0"' })
  t.same({ status: replay.status, replayed: replay.headers['idempotency-replayed'] }, { status: 204, replayed: 'true' })
  assertError(t, await client.delete('/categories/4711', key), 422, 'idempotency_key_reused')
  assertError(t, await client.delete('/categories/4711'), 404, 'category_not_found')
})

t.test('a closed sign-up is rejected before the body is read', async (t) => {
  const { nobody } = await startApp(t, { SIGNUP: 'closed' })
  for (const body of ['{', '{}', '{"name":"x"}']) {
    assertError(
      t,
      await nobody.request('POST', '/accounts', { headers: { 'content-type': 'application/json' }, body }),
      403,
      'signup_closed'
    )
  }
})
