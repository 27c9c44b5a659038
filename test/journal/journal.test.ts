import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import t from 'tap'
import type { Commit } from '../../src/database/group-commit/committer.ts'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { assertError, assertReplayed, assertResponse } from '../support/checks.ts'
import { newCategory, newPet, newWebhook } from '../support/fixtures.ts'
import { key } from '../contract/fields.ts'
import { newFault } from '../lab/fixture.ts'
import { turnOn } from './fixture.ts'

/** Returns the recorded requests of an account. */
async function recorded (client: Client, query = ''): Promise<any[]> {
  const { status, text, body } = await client.get(`/lab/requests?limit=100${query}`)
  if (status !== 200) throw new Error(text)
  return body
}

t.test('the journal', async (t) => {
  const running = await startApp(t, { RATE_LIMIT_PER_ACCOUNT: '0' })
  const { app, openAccount, withKey } = running

  await t.test('is off until it is turned on, and then has every request but those of the lab', async (t) => {
    const ada = await openAccount()
    assertError(t, await ada.get('/lab/journal'), 404, 'journal_not_found')
    assertResponse(t, await ada.get('/lab/requests'), 200, [])
    await ada.get('/pets')
    const on = await ada.request('PUT', '/lab/journal', { body: { keep: 100 } })
    assertResponse(t, on, 200, { keep: 100, requests: 0, bytes: 0, dropped: 0 })
    await ada.get('/pets?limit=3')
    await ada.get('/lab/faults')
    await ada.request('HEAD', '/account')
    await ada.get('/no-such-path')
    const requests = await recorded(ada)
    t.match(requests, [
      { operation: 'listPets', method: 'GET', path: '/pets?limit=3', status: 200, answer: '[]', outcome: 'answered' },
      { operation: 'getAccount', method: 'HEAD', path: '/account', status: 200, outcome: 'answered', answer: undefined }
    ])
    t.equal(requests.length, 2)
    const { body: journal } = await ada.get('/lab/journal')
    t.match(journal, { keep: 100, requests: 2, dropped: 0 })
    t.ok(journal.bytes > 400)
    const { id } = requests[1]
    assertResponse(t, await ada.get(`/lab/requests/${id}`), 200, requests[1])
  })

  await t.test('has the members of a request and its response', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    const { body: [{ id: keyId }] } = await ada.get('/account/keys')
    const before = Date.now()
    const created = await ada.post('/categories', { name: 'Dogs' }, {
      'Idempotency-Key': '"one"', 'Petstore-Run': 'run 7', 'X-Twice': 'a'
    })
    const [, request] = await recorded(ada)
    const { id, at, durationMs, fields, answerFields, ...rest } = request
    t.same(rest, {
      operation: 'createCategory',
      method: 'POST',
      path: '/categories',
      keyId,
      run: 'run 7',
      body: '{"name":"Dogs"}',
      status: 201,
      answer: created.text,
      outcome: 'answered',
      idempotencyKey: 'one'
    })
    t.ok(id > 0 && durationMs >= 0 && durationMs < 60_000)
    t.ok(Date.parse(at) >= before - 1_000 && Date.parse(at) <= Date.now())
    const named = (list: any[], name: string): string[] =>
      list.filter((field) => field.name === name).map(({ value }) => value)
    t.same(named(fields, 'X-Twice'), ['a'], 'names and values as they came')
    const [type, authorization, key, run] = fields.map(({ name }: any) => name)
    t.same([type, authorization, key, run], ['content-type', 'authorization', 'Idempotency-Key', 'Petstore-Run'])
    t.same(named(answerFields, 'location'), [created.headers.location])
    t.same(named(answerFields, 'etag'), [created.headers.etag])
  })

  await t.test('has no secret', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    const made = await ada.post('/account/keys', { label: ada.key })
    const { body: { id, secret } } = await ada.post('/webhooks', { url: 'https://example.com/' })
    const { body: { secret: rotated } } = await ada.request('POST', `/webhooks/${id}/rotate`)
    await ada.get(`/pets?x=${ada.key}`, { cookie: 'session=1', 'x-key': ada.key! })
    await withKey(made.body.apiKey).get('/pets')
    const text = JSON.stringify(await recorded(ada))
    for (const hidden of [ada.key!, made.body.apiKey, secret, rotated, 'session=1']) {
      t.notOk(text.includes(hidden), hidden.slice(0, 12))
      t.notOk(text.includes(hidden.slice(-8)))
    }
    const [first] = await recorded(ada)
    const field = first.fields.find(({ name }: any) => name === 'authorization')
    t.equal(field.value, 'Bearer psk_[hidden]')
  })

  await t.test('has the problem of a 400: where, and which rule', async (t) => {
    const ada = await openAccount()
    const petId = await newPet(ada)
    await turnOn(ada)
    await ada.post('/store/orders', { petId, quantity: 0 })
    await ada.post('/store/orders', {})
    await ada.post('/store/orders', { petId, colour: 'red' })
    await ada.get('/pets?limit=200')
    await ada.get('/pets/x')
    await ada.get('/pets', { 'if-match': 'x' })
    await ada.post('/messages', { message: 'x' }, { 'idempotency-key': 'a b' })
    await ada.request('POST', '/messages', { headers: { 'content-type': 'application/json' }, body: '{' })
    await ada.request('POST', '/messages', { headers: { 'content-type': 'text/plain' }, body: '{}' })
    await ada.post('/messages', { message: '\ud800' })
    await ada.post('/webhooks', { url: 'http://127.0.0.1/' })
    t.same((await recorded(ada)).map(({ status, problem }) => [status, problem.pointer, problem.rule]), [
      [400, '/body/quantity', 'minimum'],
      [400, '/body/petId', 'required'],
      [400, '/body/colour', 'additionalProperties'],
      [400, '/query/limit', 'maximum'],
      [400, '/path/petId', 'type'],
      [400, '/headers/If-Match', 'pattern'],
      [400, '/headers/Idempotency-Key', 'pattern'],
      [400, '', 'invalid_json'],
      [400, '', 'invalid_content_type'],
      [400, '/body/message', 'pattern'],
      [400, '/body/url', 'format']
    ])
  })

  await t.test('has bodies to 16 KB, as they came', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    const message = `x${'ä'.repeat(9_000)}`
    await ada.post('/messages', { message })
    await ada.request('POST', '/messages', {
      headers: { 'content-type': 'application/json' }, body: Buffer.from([0x7b, 0xff, 0x00])
    })
    await ada.request('DELETE', '/pets/1', { headers: { 'content-length': '7' }, body: 'ignored' })
    const [long, binary, ignored] = await recorded(ada)
    t.equal(Buffer.byteLength(long.body), 16_384 - 1, 'a half of the last character is left out')
    t.ok(JSON.stringify({ message }).startsWith(long.body))
    t.match(long, { bodyTruncated: true, answerTruncated: true, status: 201 })
    t.same([binary.body, binary.bodyTruncated], ['{\ufffd\u0000', undefined])
    t.match(ignored, { body: 'ignored', status: 404 })
  })

  await t.test('has a body that arrives after the service began with the request', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    const headers = {
      authorization: `Bearer ${ada.key}`, 'content-type': 'application/json', 'content-length': 15, expect: '100-continue'
    }
    const asked = httpRequest({ port: running.port, host: '127.0.0.1', method: 'POST', path: '/categories', headers })
    asked.flushHeaders()
    await once(asked, 'continue')
    asked.end('{"name":"Dogs"}')
    const [response] = await once(asked, 'response') as [IncomingMessage]
    response.resume()
    await once(response, 'end')
    t.match(await recorded(ada), [{ status: 201, body: '{"name":"Dogs"}' }])
  })

  await t.test('has a request that a limit, its key or the store refuses', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    const { body: { apiKey, id } } = await ada.post('/account/keys', { readOnly: true })
    await withKey(apiKey).post('/messages', { message: 'x' })
    await ada.get('/pets/4711')
    t.match((await recorded(ada)).slice(1), [
      { operation: 'createMessage', status: 403, keyId: id, outcome: 'answered' },
      { operation: 'getPet', status: 404, outcome: 'answered' }
    ])
  })

  await t.test('knows the attempts of a request, by their key or by their content', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    const refused = async (): Promise<number> =>
      await newFault(ada, { operation: 'createMessage', effect: { type: 'refuse', status: 503, retryAfter: 3 } })
    const post = async (message: string, headers = {}): Promise<Answer> =>
      await ada.post('/messages', { message }, headers)
    const faultId = await refused()
    await post('a', { 'idempotency-key': 'k' })
    await post('a', { 'idempotency-key': 'k' })
    await post('a', { 'idempotency-key': 'k' })
    await post('b')
    await refused()
    await post('c')
    await post('c')
    const requests = await recorded(ada)
    const ids = requests.map(({ id }) => id)
    t.match(requests, [
      { outcome: 'refused', status: 503, faultId, attemptOf: undefined, pauseMs: undefined, body: '{"message":"a"}' },
      { outcome: 'answered', status: 201, attemptOf: ids[0], replayed: undefined, faultId: undefined },
      { outcome: 'answered', status: 201, attemptOf: ids[0], replayed: true },
      { status: 201, attemptOf: undefined },
      { status: 503, attemptOf: undefined, body: '{"message":"c"}' },
      { status: 201, attemptOf: ids[4] }
    ])
    t.ok(requests.every(({ attemptOf, pauseMs }) => (attemptOf === undefined) === (pauseMs === undefined)))
  })

  await t.test('keeps the newest requests, and at most 16 MB', async (t) => {
    const ada = await openAccount()
    await turnOn(ada, 3)
    for (let i = 1; i <= 5; i++) await ada.get(`/pets?limit=${i}`)
    const kept = await recorded(ada)
    t.same(kept.map(({ path }) => path), ['/pets?limit=3', '/pets?limit=4', '/pets?limit=5'])
    const less = await ada.request('PUT', '/lab/journal', { body: { keep: 1 } })
    t.match(less.body, { keep: 1, requests: 1 })
    t.same(await recorded(ada), kept.slice(2))
    await turnOn(ada, 10_000)
    t.match((await ada.get('/lab/journal')).body, { requests: 1 })
    // As if the others were large.
    const large = { where: { accountId: ada.account! }, data: { bytes: 16_777_000 } }
    await app.database.prisma.recordedBatch.updateMany(large)
    await app.database.prisma.journal.updateMany(large)
    await ada.get('/pets?limit=6')
    t.same((await recorded(ada)).map(({ path }) => path), ['/pets?limit=6'])
    const { body } = await ada.get('/lab/journal')
    t.ok(body.bytes < 2_000, String(body.bytes))
  })

  await t.test('is emptied, turned off, and on again under new ids', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    await ada.get('/pets')
    const [{ id }] = await recorded(ada)
    await ada.get('/pets')
    assertResponse(t, await ada.delete('/lab/requests'), 204)
    t.same(await recorded(ada), [])
    t.match((await ada.get('/lab/journal')).body, { requests: 0, bytes: 0 })
    await ada.get('/pets')
    assertResponse(t, await ada.delete('/lab/journal'), 204)
    assertError(t, await ada.delete('/lab/journal'), 404, 'journal_not_found')
    await ada.get('/pets')
    t.same(await recorded(ada), [])
    const putNew = async (): Promise<Answer> =>
      await ada.request('PUT', '/lab/journal', { headers: { 'if-none-match': '*' }, body: { keep: 5 } })
    assertResponse(t, await putNew(), 200, { keep: 5, requests: 0, bytes: 0, dropped: 0 })
    assertError(t, await putNew(), 412, 'precondition_failed')
    await ada.get('/pets')
    const [again] = await recorded(ada)
    t.ok(again.id > id + 1)
  })

  await t.test('keeps its requests when the deletion of the one before is repeated', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    const deleted = await ada.delete('/lab/journal', key('off'))
    await turnOn(ada)
    const { commit } = app
    app.commit = (async (command, input, context) => {
      const result = await commit(command, input, context)
      if (command.name === 'deleteJournal') await ada.get('/pets')
      return result
    }) as Commit
    t.teardown(() => { app.commit = commit })
    assertReplayed(t, await ada.delete('/lab/journal', key('off')), deleted, 'the repeated request')
    t.match(await recorded(ada), [{ path: '/pets' }])
  })

  await t.test('takes PUT without an Idempotency-Key, and refuses what makes no sense', async (t) => {
    const ada = await openAccount()
    for (const body of [{}, { keep: 0 }, { keep: 10_001 }, { keep: '5' }, { keep: 5, more: 1 }]) {
      assertError(t, await ada.request('PUT', '/lab/journal', { body }), 400, 'validation_failed', /keep|more/)
    }
    const put = await ada.request('PUT', '/lab/journal', { headers: { 'idempotency-key': 'a b' }, body: { keep: 5 } })
    t.match(put, { status: 200, headers: { 'idempotency-replayed': undefined } })
    const { body: { apiKey } } = await ada.post('/account/keys', { readOnly: true })
    const reader = withKey(apiKey)
    assertError(t, await reader.request('PUT', '/lab/journal', { body: { keep: 5 } }), 403, 'read_only_key')
    t.equal((await reader.get('/lab/journal')).status, 200)
    t.equal((await reader.get('/lab/requests')).status, 200)
  })

  await t.test('belongs to the lab: a reset or a restored store leaves it as it is', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    await newCategory(ada)
    await newWebhook(ada)
    const before = await recorded(ada)
    const { body: { id } } = await ada.post('/lab/snapshots', {})
    await ada.post('/lab/reset', {})
    await ada.request('POST', `/lab/snapshots/${id}/restore`)
    t.same(await recorded(ada), before)
  })

  await t.test('counts for what its account stores, as long as it has requests', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    const stored = async (): Promise<number> =>
      Number((await app.database.prisma.account.findUniqueOrThrow({ where: { id: ada.account! } })).storedBytes)
    const before = await stored()
    await ada.get('/pets')
    const { body: { bytes } } = await ada.get('/lab/journal')
    t.equal(await stored(), before + bytes)
    await ada.delete('/lab/requests')
    t.equal(await stored(), before)
  })

  await t.test('follows the clock of its account, but measures in real time', async (t) => {
    const ada = await openAccount()
    await turnOn(ada)
    await ada.get('/pets')
    await ada.post('/lab/clock/advance', { to: '2040-01-01T00:00:00Z' })
    await ada.get('/pets')
    const [, second] = await recorded(ada)
    t.match(second.at, /^2040-01-01/)
    t.ok(second.pauseMs < 60_000)
  })
})
