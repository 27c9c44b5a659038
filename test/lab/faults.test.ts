import t from 'tap'
import { startApp, type Answer } from '../support/app.ts'
import { assertError, assertRejectsInput, assertResponse } from '../support/checks.ts'
import { newCategory, stocked } from '../support/fixtures.ts'
import { inOneGroup } from '../support/groups.ts'
import { operationsOf } from '../support/operations.ts'
import { openStream } from '../support/stream.ts'
import { newFault } from './fixture.ts'
import { eventTypes, receive } from './receive.ts'

t.test('faults', async (t) => {
  const running = await startApp(t)
  const { app, openAccount, withKey } = running

  await t.test('bad input is refused with the field and the rule', async (t) => {
    const ada = await openAccount()
    const valid = { operation: 'listPets', effect: { type: 'reset' } }
    await assertRejectsInput(t, async (body) => await ada.post('/lab/faults', body), [
      [{}, 'operation is required'],
      [{ operation: 'listPets' }, 'effect is required'],
      [{ ...valid, operation: 'listCats' }, 'operation must be the operationId'],
      [{ ...valid, operation: 'createAccount' }, 'operation must be the operationId'],
      [{ ...valid, effect: {} }, /effect.type must be one of delay, refuse|effect.type is required/],
      [{ ...valid, effect: { type: 'explode' } }, 'effect.type must be one of delay, refuse, reset, lose_answer'],
      [{ ...valid, effect: { type: 'delay' } }, 'effect.ms is required'],
      [{ ...valid, effect: { type: 'delay', ms: 0 } }, 'effect.ms must be 1 or more'],
      [{ ...valid, effect: { type: 'delay', ms: 60_001 } }, 'effect.ms must be 60000 or less'],
      [{ ...valid, effect: { type: 'reset', ms: 1 } }, '"ms" is not allowed'],
      [{ ...valid, effect: { type: 'refuse', status: 404 } }, 'effect.status must be one of 408, 429, 500, 502'],
      [{ ...valid, effect: { type: 'truncate', bytes: 1_000_001 } }, 'effect.bytes must be 1000000 or less'],
      [{ ...valid, effect: { type: 'trickle', bytesPerSecond: 0 } }, 'effect.bytesPerSecond must be 1 or more'],
      [{ ...valid, effect: { type: 'corrupt', how: 'odd' } }, 'effect.how must be one of'],
      [{ ...valid, effect: { type: 'corrupt', how: 'bad_signature' } }, /need "operation": "webhook"/],
      [{ operation: 'webhook', effect: { type: 'refuse', status: 503 } }, 'effect.type must be delay, reset'],
      [{ operation: 'webhook', effect: { type: 'corrupt', how: 'wrong_type' } }, 'effect.how must be bad_signature'],
      [{ ...valid, times: 0 }, 'times must be 1 or more'],
      [{ ...valid, times: 1_001 }, 'times must be 1000 or less'],
      [{ ...valid, after: 1_000_001 }, 'after must be 1000000 or less'],
      [{ ...valid, operation: 'webhook', keyId: 1 }, 'receivers get no API key'],
      [{ ...valid, forSeconds: 0 }, 'forSeconds must be 1 or more'],
      [{ ...valid, forSeconds: 2_592_001 }, 'forSeconds must be 2592000 or less'],
      [{ ...valid, forSeconds: 1, times: 1 }, 'forSeconds must be left out with times'],
      [{ ...valid, rate: 0 }, 'rate must be 0.000001 or more'],
      [{ ...valid, rate: 1.1 }, 'rate must be 1 or less'],
      [{ ...valid, rate: 0.5, seed: -1 }, 'seed must be 0 or more'],
      [{ ...valid, rate: 0.5, seed: 4_294_967_296 }, 'seed must be 4294967295 or less'],
      [{ ...valid, seed: 1 }, 'seed must be left out without rate'],
      [{ ...valid, junk: 1 }, '"junk" is not allowed']
    ])
    assertResponse(t, await ada.get('/lab/faults'), 200, [])
  })

  await t.test('a fault of a key that the account does not have is refused', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const [{ id: foreign }] = (await bob.get('/account/keys')).body
    for (const keyId of [foreign, 4_000_000, 2 ** 63, 1e300]) {
      const refused = await ada.post('/lab/faults', { operation: 'listPets', effect: { type: 'reset' }, keyId })
      assertError(t, refused, 409, 'unknown_api_key', 'keyId')
      const faults = [{ operation: 'listPets', effect: { type: 'reset' }, keyId }]
      assertError(t, await ada.post('/lab/scenarios', { faults }), 409, 'unknown_api_key', 'keyId')
    }
    assertResponse(t, await ada.get('/lab/faults'), 200, [])
  })

  await t.test('a fault is created, read, listed and deleted', async (t) => {
    const ada = await openAccount()
    const fields = { operation: 'placeOrder', effect: { type: 'delay', ms: 5 }, after: 1 }
    const created = await ada.post('/lab/faults', fields)
    const { id, createdAt } = created.body
    const fault = { id, ...fields, times: 1, passed: 0, hits: 0, createdAt }
    assertResponse(t, created, 201, fault)
    t.equal(created.headers.location, `/lab/faults/${id}`)
    const read = await ada.get(`/lab/faults/${id}`)
    assertResponse(t, read, 200, fault)
    t.equal(read.headers.etag, created.headers.etag)
    assertResponse(t, await ada.get('/lab/faults'), 200, [fault])
    assertResponse(t, await ada.delete(`/lab/faults/${id}`), 204)
    assertError(t, await ada.get(`/lab/faults/${id}`), 404, 'fault_not_found')
    const [first, second] = [await newFault(ada), await newFault(ada)]
    t.same((await ada.get('/lab/faults')).body.map(({ id }: any) => id), [first, second])
    assertResponse(t, await ada.delete('/lab/faults'), 204)
    assertResponse(t, await ada.get('/lab/faults'), 200, [])
  })

  await t.test('the tag of the list deletes all faults, below, at and above the length of a page', async (t) => {
    for (const count of [19, 20, 21]) {
      const ada = await openAccount()
      const [{ id: keyId }] = (await ada.get('/account/keys')).body
      const forms = [
        { operation: 'listPets', effect: { type: 'refuse', status: 503 }, after: 2, times: 3, keyId },
        { operation: 'listPets', effect: { type: 'reset' }, forSeconds: 60, rate: 0.000001, seed: 7, keyId },
        { effect: { type: 'redirect', location: 'https://example.com/?"\\' } }
      ]
      await Promise.all(Array.from({ length: count }, async (_, i) => await newFault(ada, forms[i])))
      const used = await newFault(ada, { operation: 'listCategories', effect: { type: 'refuse', status: 503 } })
      t.equal((await ada.get('/categories')).status, 503)
      t.equal((await ada.get('/pets')).status, 200, 'two faults let a request pass')
      const { etag } = (await ada.get('/lab/faults')).headers
      assertError(t, await ada.delete('/lab/faults', { 'if-match': '"x"' }), 412, 'precondition_failed')
      const bob = await openAccount()
      const other = await newFault(bob)
      const answers = await inOneGroup(app, [
        async () => await ada.delete('/lab/faults', { 'if-match': etag! }),
        async () => await bob.delete('/lab/faults', { 'if-match': etag! }),
        async () => await ada.delete('/lab/faults', { 'if-match': etag! }),
        async () => await ada.delete('/lab/faults')
      ])
      t.same(answers.map(({ status }) => status), [204, 412, 412, 204], 'each sees the list that the one before left')
      assertResponse(t, await ada.get('/lab/faults'), 200, [])
      assertError(t, await ada.get(`/lab/faults/${used}`), 404, 'fault_not_found')
      t.equal((await bob.get(`/lab/faults/${other}`)).status, 200, 'another account keeps its own')
    }
  })

  await t.test('of the faults that are used up, the newest thousand can be read', async (t) => {
    const ada = await openAccount()
    const { fault } = running.app.database.prisma
    const counts = { after: 0, times: 1, hits: 1 }
    const used = { accountId: ada.account!, operation: 'webhook', effect: '{"type":"reset"}', ...counts }
    await fault.createMany({ data: Array.from({ length: 1_003 }, () => ({ ...used, createdAt: new Date() })) })
    const where = { accountId: ada.account!, hits: 1 }
    const [first] = await fault.findMany({ where, orderBy: { id: 'asc' }, take: 1 })
    const open = await newFault(ada)
    t.equal(await fault.count({ where }), 1_000)
    assertError(t, await ada.get(`/lab/faults/${first!.id}`), 404, 'fault_not_found')
    t.same((await ada.get('/lab/faults')).body.map(({ id }: any) => id), [open])
  })

  await t.test('refuse answers with the error, and does not handle the request', async (t) => {
    const ada = await openAccount()
    for (const status of [408, 429, 500, 502, 503, 504]) {
      const id = await newFault(ada, { operation: 'createCategory', effect: { type: 'refuse', status, retryAfter: 7 } })
      const refused = await ada.post('/categories', { name: 'Dogs' })
      assertError(t, refused, status, 'injected_fault', String(id))
      t.match(refused.headers, { 'petstore-fault': String(id), 'retry-after': '7' })
      const read = await ada.get(`/lab/faults/${id}`)
      t.match(read.body, { passed: 0, hits: 1 }, 'a fault that is used up can be read')
    }
    assertResponse(t, await ada.get('/lab/faults'), 200, [], 'and is not listed')
    assertResponse(t, await ada.get('/categories'), 200, [])
    t.same(await eventTypes(ada), Array(6).fill('fault.hit'))
    const { body: [{ data }] } = await ada.get('/events?limit=1')
    t.match(data, { fault: { hits: 1, effect: { type: 'refuse' } }, operation: 'createCategory' })
    t.equal((await ada.post('/categories', { name: 'Dogs' })).status, 201, 'the next request passes')
  })

  await t.test('delay handles the request and holds its answer back', async (t) => {
    const ada = await openAccount()
    const id = await newFault(ada, { operation: 'createCategory', effect: { type: 'delay', ms: 300 } })
    const answer = await receive(running, ada, 'POST', '/categories', { name: 'Dogs' })
    t.match(answer, { status: 201, whole: true, fault: String(id) })
    t.ok(answer!.ms >= 290, `${answer!.ms} ms`)
    t.same(await eventTypes(ada), ['category.created', 'fault.hit'])
  })

  await t.test('reset closes the connection and does not handle the request', async (t) => {
    const ada = await openAccount()
    await newFault(ada, { operation: 'createCategory', effect: { type: 'reset' } })
    t.equal(await receive(running, ada, 'POST', '/categories', { name: 'Dogs' }), undefined)
    assertResponse(t, await ada.get('/categories'), 200, [])
    t.same(await eventTypes(ada), ['fault.hit'])
  })

  await t.test('lose_answer commits, and closes the connection', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 5)
    await newFault(ada, { operation: 'placeOrder', effect: { type: 'lose_answer' } })
    const order = { petId, quantity: 2 }
    const headers = { 'idempotency-key': 'one' }
    t.equal(await receive(running, ada, 'POST', '/store/orders', order, headers), undefined)
    t.equal((await ada.get('/store/orders')).body.length, 1, 'the order is committed')
    const retried = await ada.post('/store/orders', order, headers)
    t.match(retried, { status: 201, headers: { 'idempotency-replayed': 'true' } })
    t.same((await ada.get('/store/orders')).body, [retried.body], 'one order')
    t.equal((await ada.get(`/inventory/${petId}`)).body.quantity, 3)
    t.same((await eventTypes(ada)).slice(-2), ['order.placed', 'fault.hit'])
  })

  await t.test('replace_answer commits, and answers with the error', async (t) => {
    const ada = await openAccount()
    for (const status of [500, 502, 503, 504]) {
      const id = await newFault(ada, { operation: 'createCategory', effect: { type: 'replace_answer', status } })
      const answer = await ada.post('/categories', { name: String(status) })
      assertError(t, answer, status, 'injected_fault', String(id))
      t.match(answer.headers, { 'petstore-fault': String(id), etag: undefined, location: undefined })
    }
    t.same((await ada.get('/categories')).body.map(({ name }: any) => name), ['500', '502', '503', '504'])
    const read = await newFault(ada, { operation: 'listCategories', effect: { type: 'replace_answer', status: 500 } })
    const answer = await ada.get('/categories')
    assertError(t, answer, 500, 'injected_fault', String(read))
    await newFault(ada, { operation: 'deleteCategory', effect: { type: 'replace_answer', status: 500 } })
    const { body: [{ id }] } = await ada.get('/categories?limit=1')
    assertError(t, await ada.delete(`/categories/${id}`), 500, 'injected_fault')
    assertError(t, await ada.get(`/categories/${id}`), 404, 'category_not_found')
  })

  await t.test('truncate promises the whole body, and sends a part', async (t) => {
    const ada = await openAccount()
    await newCategory(ada, 'A long name of a category')
    const { text } = await ada.get('/categories')
    for (const bytes of [0, 1, 10, 1_000_000]) {
      const id = await newFault(ada, { operation: 'listCategories', effect: { type: 'truncate', bytes } })
      const answer = await receive(running, ada, 'GET', '/categories')
      const part = text.slice(0, bytes)
      t.match(answer, { status: 200, text: part, promised: text.length, fault: String(id), whole: part === text })
    }
    t.match(await receive(running, ada, 'GET', '/categories'), { status: 200, text, whole: true })
  })

  await t.test('trickle sends the body slowly', async (t) => {
    const ada = await openAccount()
    await newCategory(ada)
    const { text } = await ada.get('/categories')
    await newFault(ada, { operation: 'listCategories', effect: { type: 'trickle', bytesPerSecond: text.length * 2 } })
    const answer = await receive(running, ada, 'GET', '/categories')
    t.match(answer, { status: 200, text, whole: true, promised: text.length })
    t.ok(answer!.ms >= 400, `${answer!.ms} ms`)
  })

  await t.test('corrupt breaks the body in the one way that the fault names', async (t) => {
    const ada = await openAccount()
    const categoryId = await newCategory(ada)
    const { body: pet } = await ada.post('/pets', { name: 'Rex', categoryId })
    const bodyOf = async (how: string, path = `/pets?id=${pet.id}`): Promise<string> => {
      await newFault(ada, { operation: '*', effect: { type: 'corrupt', how } })
      const answer = await receive(running, ada, 'GET', path)
      t.ok(answer!.whole)
      return answer!.text
    }
    const invalid = await bodyOf('invalid_json')
    t.throws(() => JSON.parse(invalid), 'no JSON')
    const { body: { id: snapshotId } } = await ada.post('/lab/snapshots', {})
    await newFault(ada, { operation: 'getSnapshotRows', effect: { type: 'corrupt', how: 'invalid_json' } })
    const lines = (await receive(running, ada, 'GET', `/lab/snapshots/${snapshotId}/rows`))!.text.trimEnd().split('\n')
    const last = lines.pop()!
    t.ok(lines.length > 0 && lines.every((line) => typeof JSON.parse(line) === 'object'))
    t.throws(() => JSON.parse(last), 'a line that is no JSON')
    const [wrong] = JSON.parse(await bodyOf('wrong_type'))
    t.same(Object.keys(wrong), Object.keys(pet))
    const changed = Object.keys(pet).filter((name) => typeof wrong[name] !== typeof pet[name])
    t.equal(changed.length, 1, 'one member has another type')
    const [short] = JSON.parse(await bodyOf('missing_field'))
    t.equal(Object.keys(short).length, Object.keys(pet).length - 1)
    const petId = await stocked(ada, 5)
    const { body: order } = await ada.post('/store/orders', { petId })
    const { id, ...others } = order
    t.same(JSON.parse(await bodyOf('missing_field', '/store/orders')), [others], 'of an order no member is required')
    const [odd] = JSON.parse(await bodyOf('unknown_enum'))
    t.same(odd, { ...pet, status: 'unknown' })
    t.same(JSON.parse(await bodyOf('unknown_field')), [{ ...pet, unknown: 'unknown' }])
    const event = JSON.parse(await bodyOf('missing_field', '/events?limit=1'))
    t.equal(event[0].id, undefined)
    const without = await newFault(ada, { operation: '*', effect: { type: 'corrupt', how: 'unknown_enum' } })
    const same = await ada.get(`/categories/${categoryId}`)
    t.same(same.body, { id: categoryId, name: 'Dogs' }, 'without an enum the body stays')
    t.equal(same.headers['petstore-fault'], `${without}; skipped`, 'and the answer says so')
  })

  await t.test('a fault lets requests pass, hits the next ones, and ends; the oldest that is due hits', async (t) => {
    const ada = await openAccount()
    const effect = { type: 'refuse', status: 500 }
    const first = await newFault(ada, { operation: 'listPets', effect, after: 2, times: 2 })
    const second = await newFault(ada, { operation: 'listPets', effect, times: 1 })
    const hits: Array<string | undefined> = []
    for (let i = 0; i < 6; i++) hits.push((await ada.get('/pets')).headers['petstore-fault'] as string | undefined)
    const [a, b] = [String(first), String(second)]
    t.same(hits, [b, undefined, a, a, undefined, undefined])
    t.match((await ada.get(`/lab/faults/${first}`)).body, { passed: 2, hits: 2 })
  })

  await t.test('a fault of * spares the lab and the account, and hits HEAD as well', async (t) => {
    const ada = await openAccount()
    const bob = await openAccount()
    await newFault(ada, { operation: '*', effect: { type: 'refuse', status: 500 }, times: 2 })
    for (const path of ['/lab/faults', '/lab/clock', '/account', '/account/keys']) {
      t.equal((await ada.get(path)).status, 200, path)
    }
    t.equal((await bob.get('/pets')).status, 200, 'another account')
    t.equal((await ada.request('HEAD', '/pets')).status, 500)
    t.equal((await ada.get('/events')).status, 500)
    t.equal((await ada.get('/events')).status, 200)
    await newFault(ada, { operation: 'getAccount', effect: { type: 'refuse', status: 500 } })
    t.equal((await ada.get('/account')).status, 500, 'by its name, an operation of the account can be hit')
  })

  await t.test('a fault of * hits every operation but those of the lab and the account', async (t) => {
    const spared = { lab: 0, accounts: 0 }
    await Promise.all(operationsOf(app).map(async ({ operationId, method, path, tags }) => {
      // Some operations end faults.
      const ada = await openAccount()
      await newFault(ada, { operation: '*', effect: { type: 'refuse', status: 500 } })
      const { headers } = await ada.request(method, path.replaceAll(/\{\w+\}/g, '1'))
      const tag = (['lab', 'accounts'] as const).find((name) => tags.includes(name))
      t.equal(headers['petstore-fault'] === undefined, tag !== undefined, operationId)
      if (tag !== undefined) spared[tag]++
    }))
    t.ok(spared.lab > 20 && spared.accounts > 5, `spared: ${JSON.stringify(spared)}`)
  })

  await t.test('a fault of one key hits requests of that key alone', async (t) => {
    const ada = await openAccount()
    const { body: { id: keyId, apiKey } } = await ada.post('/account/keys', {})
    await newFault(ada, { operation: 'listPets', effect: { type: 'refuse', status: 500 }, keyId })
    t.equal((await ada.get('/pets')).status, 200)
    t.equal((await withKey(apiKey).get('/pets')).status, 500)
    t.equal((await withKey(apiKey).get('/pets')).status, 200)
  })

  await t.test('faults are matched after authorization and before the body is read', async (t) => {
    const ada = await openAccount()
    const { body: { apiKey } } = await ada.post('/account/keys', { readOnly: true })
    const id = await newFault(ada, { operation: 'createCategory', effect: { type: 'refuse', status: 500 } })
    assertError(t, await withKey(apiKey).post('/categories', {}), 403, 'read_only_key')
    const headers = { 'content-type': 'application/json' }
    assertError(t, await ada.request('POST', '/categories', { headers, body: '{' }), 500, 'injected_fault')
    t.match((await ada.get(`/lab/faults/${id}`)).body, { passed: 0, hits: 1 })
  })

  await t.test('a stream is cut after its next event, and resumes without a loss', async (t) => {
    for (const type of ['reset', 'lose_answer']) {
      const ada = await openAccount()
      await newFault(ada, { operation: 'listEvents', effect: { type } })
      const cut = await openStream(running, ada)
      t.equal(cut.status, 200)
      await newCategory(ada)
      await newCategory(ada)
      await cut.ended
      t.same(cut.events.map(({ id }) => id), [1], type)
      const resumed = await openStream(running, ada, { headers: { 'last-event-id': '1' } })
      await resumed.until(2)
      resumed.close()
      t.same(resumed.events.map(({ type }) => type).sort(), ['category.created', 'fault.hit'])
    }
  })

  await t.test('a stream is delayed and slow', async (t) => {
    const ada = await openAccount()
    await newFault(ada, { operation: 'listEvents', effect: { type: 'delay', ms: 400 } })
    const delayed = await openStream(running, ada)
    const began = performance.now()
    await newCategory(ada)
    await delayed.until(2)
    t.ok(performance.now() - began >= 390)
    t.same(delayed.events.map(({ type }) => type), ['fault.hit', 'category.created'])
    delayed.close()
    await newFault(ada, { operation: 'listEvents', effect: { type: 'trickle', bytesPerSecond: 1_000 } })
    const from = performance.now()
    const slow = await openStream(running, ada)
    await slow.until(2)
    t.ok(performance.now() - from >= 300)
    slow.close()
  })

  await t.test('the request id of a hit is that of the request', async (t) => {
    const ada = await openAccount()
    await newFault(ada, { operation: 'listPets', effect: { type: 'refuse', status: 500 } })
    await ada.get('/pets', { 'request-id': 'mine-1' })
    const { body: [{ data }] } = await ada.get('/events')
    t.match(data, { requestId: 'mine-1', operation: 'listPets' })
  })

  await t.test('an account without a fault is never hit', async (t) => {
    const answers: Answer[] = []
    const ada = await openAccount()
    for (let i = 0; i < 20; i++) answers.push(await ada.get('/pets'))
    t.ok(answers.every(({ headers }) => headers['petstore-fault'] === undefined))
  })
})
