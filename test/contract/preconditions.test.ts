import t from 'tap'
import { startApp, type Answer } from '../support/app.ts'
import { assertError, assertListed, assertReplayed, assertResponse } from '../support/checks.ts'
import { newCategory, newWebhook } from '../support/fixtures.ts'
import { bodyOf, operationsOf, pathOf, stockedStore } from '../support/operations.ts'
import { ifMatch, ifNoneMatch, key } from './fields.ts'

/** Fields that are no list of entity tags (RFC 9110 sections 5.6.1 and 8.8.3). */
const MALFORMED = [
  'x', '2', '"2', '2"', '""2""', 'w/"2"', 'W/2', 'W/ "2"', '"a" "b"', 'x"2"y', '"a",b', '*, "a"', '"a", *', '**',
  '"a" ,x', ', x', '"a\tb"', '\'2\''
]

t.test('preconditions', async (t) => {
  const running = await startApp(t)
  const { app, openAccount, nobody } = running
  const operations = operationsOf(app)

  await t.test('every operation rejects a malformed field before everything else in a request', async (t) => {
    const ada = await openAccount()
    for (const { operationId, method, path } of operations) {
      const at = `${path.replace(/\{\w+\}/, 'x')}?x=1`
      for (const [name, field] of [['If-Match', 'x"2"y'], ['If-None-Match', 'w/"2"']] as const) {
        const answer = await ada.request(method, at, { headers: { [name]: field }, body: { unknown: 1 } })
        assertError(t, answer, 400, 'validation_failed', `${name} must be * or entity tags`, operationId)
      }
    }
    assertError(t, await nobody.get('/pets', ifMatch('x')), 401, 'unauthorized')
  })

  await t.test('a field is * or a list of entity tags', async (t) => {
    const ada = await openAccount()
    const path = `/categories/${await newCategory(ada)}`
    for (const fields of [ifMatch, ifNoneMatch]) {
      for (const field of MALFORMED) {
        const change = await ada.patch(path, { name: 'X' }, fields(field))
        for (const answer of [await ada.get(path, fields(field)), change]) {
          assertError(t, answer, 400, 'validation_failed', 'must be * or entity tags', JSON.stringify(field))
        }
      }
    }
    for (const field of ['"1"', ' "1" ', '"a","1"', '"a" ,\t"1"', ', ,"1",,', 'W/"a", "1"', '"!#", "1"', '*', ' * ']) {
      t.equal((await ada.get(path, ifMatch(field))).status, 200, field)
      t.equal((await ada.get(path, ifNoneMatch(field))).status, 304, field)
    }
    for (const field of ['', ',', '"a"', 'W/"1"', '"1 "'.replace(' ', '!')]) {
      assertError(t, await ada.get(path, ifMatch(field)), 412, 'precondition_failed', 'If-Match', field)
    }
    t.equal((await ada.get(path)).body.name, 'Dogs')
  })

  await t.test('If-Match holds for reads of records and lists', async (t) => {
    const ada = await openAccount()
    await stockedStore(ada)
    const [{ id }] = (await ada.get('/pets')).body
    for (const path of ['/account', '/pets', `/pets/${id}`, `/pets?id=${id}`, '/inventory', '/events', '/account/keys']) {
      const { headers: { etag } } = await ada.get(path)
      for (const method of ['GET', 'HEAD']) {
        const read = async (headers: Record<string, string>): Promise<Answer> =>
          await ada.request(method, path, { headers })
        t.equal((await read(ifMatch(etag))).status, 200, path)
        t.equal((await read(ifMatch('*'))).status, 200, path)
        t.equal((await read({ ...ifMatch(etag), ...ifNoneMatch(etag) })).status, 304, path)
        const stale = await read({ ...ifMatch('"stale"'), ...ifNoneMatch(etag) })
        t.equal(stale.status, 412, path)
        t.notOk('etag' in stale.headers)
        t.equal((await read(ifMatch(`W/${etag}`))).status, 412, `${path}, weakly`)
      }
    }
    assertError(t, await ada.get('/categories/4711', ifMatch('"1"')), 404, 'category_not_found')
    assertError(t, await ada.get('/pets', ifMatch('"1"')), 412, 'precondition_failed', 'If-Match')
    const { headers: { etag } } = await nobody.get('/openapi.json')
    t.equal((await nobody.get('/openapi.json', ifMatch(etag))).status, 200)
    assertError(t, await nobody.get('/openapi.json', ifMatch('"1"')), 412, 'precondition_failed')
    assertError(t, await nobody.get('/openapi.json', ifMatch('1')), 400, 'validation_failed')
  })

  await t.test('a stream has no entity tag', async (t) => {
    const ada = await openAccount()
    const stream = async (headers: Record<string, string>, method = 'GET'): Promise<Answer> =>
      await ada.request(method, '/events', { headers: { accept: 'text/event-stream', ...headers } })
    assertError(t, await stream(ifMatch('"1"')), 412, 'precondition_failed', 'If-Match')
    t.match(await stream(ifNoneMatch('*')), { status: 304, headers: { 'event-id': '0' } })
    t.match(await stream({ ...ifMatch('*'), ...ifNoneMatch('"1"') }, 'HEAD'), { status: 200 })
  })

  await t.test('a POST to a collection meets a collection that exists and has no tag', async (t) => {
    const ada = await openAccount()
    const ids = await stockedStore(ada)
    const isListed = (path: string): boolean =>
      operations.some((other) => other.method === 'GET' && other.path === path)
    const collections = operations.filter(({ method, path }) =>
      method === 'POST' && !path.includes('{') && (path === '/accounts' || isListed(path)))
    t.ok(collections.length >= 7)
    for (const operation of collections) {
      const post = async (headers: Record<string, string>, client = ada, own = ids): Promise<Answer> =>
        await client.request('POST', pathOf(operation, own), { headers, body: bodyOf(operation, own) })
      const count = async (): Promise<number> =>
        operation.path === '/accounts' ? 0 : (await ada.get(`${operation.path}?limit=100`)).body.length
      const before = await count()
      for (const headers of [ifMatch('"1"'), ifMatch('W/"1"'), ifMatch(''), ifNoneMatch('*')]) {
        assertError(t, await post(headers), 412, 'precondition_failed', /If-/, operation.operationId)
      }
      t.equal(await count(), before, operation.operationId)
      const both = { ...ifMatch('*'), ...ifNoneMatch('"1"') }
      for (const headers of [ifMatch('*'), ifNoneMatch('"1"'), ifNoneMatch(''), both]) {
        // A store of its own for each: a value can be unique in a store.
        const bob = await openAccount()
        t.equal((await post(headers, bob, await stockedStore(bob))).status, 201, operation.operationId)
      }
    }
  })

  await t.test('a replay of a POST precedes its preconditions, and a failed one leaves the key unused', async (t) => {
    const ada = await openAccount()
    const post = async (headers: Record<string, string>): Promise<Answer> =>
      await ada.post('/categories', { name: 'Dogs' }, { ...key('k'), ...headers })
    assertError(t, await post(ifNoneMatch('*')), 412, 'precondition_failed', 'If-None-Match')
    const first = await post({})
    t.equal(first.status, 201)
    assertReplayed(t, await post(ifNoneMatch('*')), first, 'a replay')
    assertListed(t, await ada.get('/categories'), [first.body.id])
  })

  await t.test('a rotation and a test are judged against the webhook', async (t) => {
    const ada = await openAccount()
    const path = `/webhooks/${await newWebhook(ada)}`
    for (const action of ['rotate', 'test']) {
      const post = async (headers: Record<string, string>, at = path): Promise<Answer> =>
        await ada.request('POST', `${at}/${action}`, { headers })
      const { headers: { etag } } = await ada.get(path)
      for (const headers of [ifMatch('"stale"'), ifNoneMatch('*'), ifNoneMatch(etag)]) {
        assertError(t, await post(headers), 412, 'precondition_failed', /If-/, action)
      }
      t.equal((await ada.get(path)).headers.etag, etag, 'nothing happened')
      assertError(t, await post(ifMatch('*'), '/webhooks/4711'), 404, 'webhook_not_found')
      const done = await post({ ...ifMatch(etag), ...ifNoneMatch('"stale"') })
      t.equal(done.status, action === 'rotate' ? 200 : 202)
    }
    const { prisma } = app.database
    t.equal(await prisma.delivery.count({ where: { accountId: BigInt(ada.account!) } }), 1, 'one test')
    const stale = await ada.request('POST', `${path}/test`, { headers: { ...ifMatch('"stale"'), ...key('k') } })
    assertError(t, stale, 412, 'precondition_failed')
    const id = Number(path.split('/').at(-1))
    assertResponse(t, await ada.request('POST', `${path}/test`, { headers: key('k') }), 202, { webhookId: id })
  })
})
