// Only on SQLite: a tool calls its operation, whose tests run the statements.

import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { turnOn } from '../journal/fixture.ts'
import { setLimits } from '../limits/fixture.ts'
import { operationsInOrder } from '../openapi/document.ts'
import { startApp, type Client } from '../support/app.ts'
import { readerOf } from '../support/checks.ts'
import { stocked } from '../support/fixtures.ts'
import { eventually } from '../support/receiver.ts'
import { callTool, sendMessage } from './messages.ts'

t.test('tools', async (t) => {
  const { port, openAccount, nobody, withKey } = await startApp(t, { CORS_ORIGINS: 'https://pages.example' })
  const ada = await openAccount()
  const call = async (name: string, args: object = {}, client: Client = ada): Promise<any> =>
    await callTool(port, client, name, args)
  const list = async (set = '', client: Client = ada): Promise<any[]> =>
    (await sendMessage(port, client, { method: 'tools/list' }, {}, `/mcp${set}`)).body.result.tools
  const names = async (set?: string, client?: Client): Promise<string[]> =>
    (await list(set, client)).map(({ name }) => name)

  await t.test('are a dozen of the store, those of the lab, or all whose body is JSON', async (t) => {
    t.same((await names()).length, 12)
    t.ok((await names()).includes('placeOrder'))
    const operations = operationsInOrder((await nobody.get('/openapi.json')).body)
    const ids = operations.map(({ operation }) => operation.operationId).filter((id) => id !== 'importSnapshot')
    t.same(await names('?tools=all'), ids)
    const ofLab = operations.filter(({ operation: { tags } }) => tags.includes('lab'))
      .map(({ operation }) => operation.operationId).filter((id) => id !== 'importSnapshot')
    t.same(await names('?tools=lab'), ofLab)
    t.match((await sendMessage(port, ada, { method: 'tools/list' }, {}, '/mcp?tools=some')),
      { status: 400, body: { code: 'validation_failed' } })
  })

  await t.test('have schemas that stand alone, and say what they change', async (t) => {
    const tools = await list('?tools=all')
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    for (const { name, inputSchema } of tools) t.doesNotThrow(() => ajv.compile(inputSchema), name)
    const hints = (wanted: string): unknown => tools.find(({ name }) => name === wanted).annotations
    const of = (readOnlyHint: boolean, destructiveHint: boolean, idempotentHint: boolean): object =>
      ({ readOnlyHint, destructiveHint, idempotentHint })
    t.same(hints('listPets'), of(true, false, true))
    t.same(hints('verifyRequests'), of(true, false, true))
    t.same(hints('placeOrder'), of(false, false, false))
    t.same(hints('updatePet'), of(false, true, false))
    t.same(hints('deletePet'), of(false, true, true))
    t.same(hints('resetStore'), of(false, true, false))
    const order = tools.find(({ name }) => name === 'placeOrder').inputSchema
    t.same([Object.keys(order.properties), order.required], [['idempotencyKey', 'body'], ['body']])
  })

  await t.test('answer as their operation, with the fields that a client acts on', async (t) => {
    const petId = await stocked(ada, 10)
    const { structuredContent, content, isError } = await call('placeOrder', { body: { petId, quantity: 2 } })
    t.equal(isError, false)
    t.match(structuredContent,
      { status: 201, body: { petId, quantity: 2 }, fields: { location: String, etag: String } })
    t.same(JSON.parse(content[0].text), structuredContent)
    const { body: order } = await ada.get(structuredContent.fields.location)
    t.same(structuredContent.body, order)
    const { fields: { etag } } = structuredContent
    t.match(await call('getOrder', { orderId: order.id, ifNoneMatch: etag }), { structuredContent: { status: 304 } })
    await stocked(ada, 1)
    const { structuredContent: page } = await call('listPets', { limit: 1 })
    t.match(page.fields.link, /rel="next"/)
    const both = await call('listPets', { id: [petId, page.body[0].id] })
    t.equal(both.structuredContent.status, 200)
  })

  await t.test('answer errors with their code', async (t) => {
    for (const [name, args, status, code] of [
      ['getOrder', { orderId: 999_999 }, 404, 'order_not_found'],
      ['getOrder', { orderId: 'a/b?c' }, 400, 'validation_failed'],
      ...['', '.', '..'].map((orderId) => ['getOrder', { orderId }, 400, 'validation_failed'] as const),
      ['getOrder', {}, 400, 'validation_failed'],
      ['getOrder', { orderID: 1 }, 400, 'validation_failed'],
      ['getOrder', { orderId: {} }, 400, 'validation_failed'],
      ['listPets', { id: [] }, 400, 'validation_failed'],
      ['listInventory', { petId: [] }, 400, 'validation_failed'],
      ['listOrders', { ifNoneMatch: [] }, 400, 'validation_failed'],
      ['getOrder', { orderId: '\ud800' }, 400, 'validation_failed'],
      ['placeOrder', { body: { petId: 'x' } }, 400, 'validation_failed'],
      ['placeOrder', { body: { petId: 1 }, idempotencyKey: 'a\r\nx: y' }, 400, 'validation_failed'],
      ['getOrder', { __proto__: null, toString: 'x', orderId: 1 }, 400, 'validation_failed']
    ] as const) {
      const result = await call(name, args)
      t.match(result, { isError: true, structuredContent: { status, code, body: { code, status, message: String } } })
    }
    const nested = JSON.stringify({
      jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'placeOrder', arguments: { body: 'NESTED' } }
    }).replace('"NESTED"', '['.repeat(50_000) + ']'.repeat(50_000))
    t.match((await sendMessage(port, ada, nested)).body.result, {
      isError: true, structuredContent: { body: { code: 'validation_failed', message: /"body" is nested too deeply/ } }
    })
    const missing = await sendMessage(port, ada, { method: 'tools/call', params: { name: 'nothing', arguments: {} } })
    t.match(missing.body.error, { code: -32_602, message: 'There is no tool nothing at /mcp' })
    const other = { method: 'tools/call', params: { name: 'getClock', arguments: {} } }
    t.match((await sendMessage(port, ada, other)).body.error, { code: -32_602 })
    t.match((await sendMessage(port, ada, other, {}, '/mcp?tools=lab')).body.result, { isError: false })
  })

  await t.test('repeat nothing with the same idempotency key, and the journal has each call once', async (t) => {
    const bob = await openAccount()
    const petId = await stocked(bob, 10)
    await turnOn(bob)
    const args = { body: { petId }, idempotencyKey: 'once' }
    const [first, second] = [await call('placeOrder', args, bob), await call('placeOrder', args, bob)]
    t.same(second.structuredContent.body, first.structuredContent.body)
    t.equal(second.structuredContent.fields['idempotency-replayed'], 'true')
    const { body: requests } = await bob.get('/lab/requests?operation=placeOrder')
    t.match(requests, [{
      status: 201,
      path: '/store/orders',
      idempotencyKey: 'once',
      body: JSON.stringify({ petId }),
      answer: JSON.stringify(first.structuredContent.body)
    }, { replayed: true }])
    t.equal(requests.length, 2)
    t.equal((await bob.get('/lab/requests')).body.length, 2, 'and nothing else')
    const { body } = await sendMessage(port, bob, { method: 'resources/read', params: { uri: 'petstore://requests' } })
    t.ok(body.result, JSON.stringify(body))
    t.same(JSON.parse(body.result.contents[0].text).map(({ id }: { id: number }) => id), [2, 1])
  })

  await t.test('meet the faults of their operation', async (t) => {
    const bob = await openAccount()
    const petId = await stocked(bob, 100)
    await turnOn(bob)
    const fault = async (effect: object): Promise<void> => {
      t.equal((await bob.post('/lab/faults', { operation: 'placeOrder', times: 1, effect })).status, 201)
    }
    const order = async (idempotencyKey: string): Promise<any> =>
      (await call('placeOrder', { body: { petId }, idempotencyKey }, bob)).structuredContent
    const orders = async (): Promise<number> => (await bob.get('/store/orders')).body.length
    await fault({ type: 'lose_answer' })
    await t.rejects(order('lost'), { message: 'fetch failed' })
    t.equal(await orders(), 1)
    t.match(await order('lost'), { status: 201, fields: { 'idempotency-replayed': 'true' } })
    await fault({ type: 'reset' })
    await t.rejects(order('reset'), { message: 'fetch failed' })
    t.equal(await orders(), 1)
    await fault({ type: 'truncate', bytes: 10 })
    await t.rejects(order('cut'))
    t.equal(await orders(), 2)
    await fault({ type: 'refuse', status: 503, retryAfter: 7 })
    t.match(await order('refused'), { status: 503, code: 'injected_fault', fields: { 'retry-after': '7' } })
    await fault({ type: 'corrupt', how: 'invalid_json' })
    t.type((await order('broken')).body, 'string')
    await fault({ type: 'trickle', bytesPerSecond: 10_000 })
    t.match(await order('slow'), { status: 201, body: { petId } })
    const { body: requests } = await bob.get('/lab/requests?operation=placeOrder')
    t.same(requests.map(({ outcome }: { outcome: string }) => outcome), [
      'lost', 'answered', 'refused', 'cut', 'refused', 'answered', 'answered'
    ])
  })

  await t.test('end their request when the client leaves', async (t) => {
    const bob = await openAccount()
    const petId = await stocked(bob, 1)
    await turnOn(bob)
    const leave = async (operation: string, args: object, isHere: () => Promise<boolean>): Promise<void> => {
      const leaving = new AbortController()
      const left = t.rejects(callTool(port, bob, operation, args, leaving.signal), { name: 'AbortError' })
      await eventually(isHere)
      leaving.abort()
      await left
    }
    const untilEnded = async (operation: string): Promise<void> => {
      const recorded = async (): Promise<any[]> => (await bob.get(`/lab/requests?operation=${operation}`)).body
      await eventually(async () => (await recorded()).length === 1, 5_000, () => `${operation} has not ended`)
      t.match(await recorded(), [{ outcome: 'left' }], operation)
    }
    const isHit = async (): Promise<boolean> => (await bob.get('/lab/faults')).body.length === 0
    const delay = { type: 'delay', ms: 60_000 }
    for (const [operation, args, effect] of [
      ['placeOrder', { body: { petId } }, delay], ['listPets', {}, delay],
      ['getPet', { petId }, { type: 'trickle', bytesPerSecond: 1 }]
    ] as const) {
      await bob.post('/lab/faults', { operation, effect })
      await leave(operation, args, isHit)
      await untilEnded(operation)
    }
  })

  await t.test('are for the key of the store alone', async (t) => {
    const eve = await openAccount()
    const petId = await stocked(ada, 1)
    t.match(await call('updatePet', { petId, body: { name: 'Mine' } }, eve), {
      structuredContent: { status: 404, code: 'pet_not_found' }
    })
    for (const client of [nobody, withKey('psk_wrong')]) {
      t.match(await sendMessage(port, client, { method: 'tools/list' }),
        { status: 401, body: { code: 'unauthorized', status: 401 } })
    }
    const reader = await readerOf(ada, withKey)
    t.same(await names('', reader), ['listPets', 'getPet', 'listCategories', 'listOrders', 'getOrder', 'listInventory'])
    t.ok((await names('?tools=lab', reader)).includes('verifyRequests'))
    t.match(await call('listPets', {}, reader), { isError: false })
    t.match(await call('deletePet', { petId }, reader), { structuredContent: { status: 403, code: 'read_only_key' } })
  })

  await t.test('are offered to no page of another origin', async (t) => {
    const from = async (origin: string): Promise<unknown> =>
      await sendMessage(port, ada, { method: 'tools/list' }, { origin })
    t.match(await from('https://pages.example'), { status: 200 })
    t.match(await from('http://localhost:5173'), { status: 200 })
    t.match(await from('http://localhost.example'), { status: 403 })
    t.match(await from('https://others.example'), { status: 403, body: { jsonrpc: '2.0', error: { code: -32_000 } } })
  })

  await t.test('need messages of the protocol', async (t) => {
    t.match(await sendMessage(port, ada, '{'), { status: 400, body: { error: { code: -32_700 } } })
    const lists = JSON.stringify([1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/list' })))
    t.match(await sendMessage(port, ada, ` ${lists}`), { status: 400, body: { error: { code: -32_600 } } })
    t.match(await sendMessage(port, ada, { method: 'nothing' }), { body: { error: { code: -32_601 } } })
    t.match(await sendMessage(port, ada, { method: 'tools/list' }, { 'content-type': 'text/plain' }),
      { status: 400, body: { code: 'invalid_content_type' } })
    t.match(await sendMessage(port, ada, `"${'x'.repeat(200_000)}"`), { status: 413 })
    for (const method of ['GET', 'DELETE']) {
      const { status, headers } = await ada.request(method, '/mcp')
      t.match({ status, headers }, { status: 405, headers: { allow: 'POST, OPTIONS' } })
    }
  })

  await t.test('come with the document, the error codes, and no other resource', async (t) => {
    const { body } = await sendMessage(port, ada, { method: 'resources/list' })
    const uris: string[] = body.result.resources.map(({ uri }: { uri: string }) => uri)
    t.same(uris, ['petstore://openapi', 'petstore://errors', 'petstore://requests'])
    const read = async (uri: string): Promise<any> =>
      (await sendMessage(port, ada, { method: 'resources/read', params: { uri } })).body
    t.match(JSON.parse((await read('petstore://openapi')).result.contents[0].text), { openapi: '3.1.1' })
    const codes = JSON.parse((await read('petstore://errors')).result.contents[0].text)
    const { components } = (await nobody.get('/openapi.json')).body
    const listed = new Set<string>(codes.map(({ code }: { code: string }) => code))
    t.same([...listed].sort(), [...components.schemas.ErrorCode.enum].sort())
    t.match((await read('petstore://other')).error, { code: -32_602 })
    t.match((await read('petstore://requests')).error, { data: { code: 'journal_not_found' } })
  })

  await t.test('are refused while the service stops', async (t) => {
    const { port, app, openAccount } = await startApp(t)
    const bob = await openAccount()
    t.match(await callTool(port, bob, 'listPets'), { isError: false })
    await app.close()
    await t.rejects(callTool(port, bob, 'listPets'))
  })
})

t.test('a call counts once for the limit of an account', async (t) => {
  const { port, openAccount } = await startApp(t, { RATE_LIMIT_PER_ACCOUNT: '3' })
  const ada = await openAccount()
  for (let i = 0; i < 3; i++) t.match(await callTool(port, ada, 'listPets'), { isError: false })
  const { body } = await sendMessage(port, ada, { method: 'tools/list' })
  t.match(body.error, { code: -32_000, message: /second/ })
  t.match(await callTool(port, ada, 'listPets'), {
    isError: true, structuredContent: { status: 429, code: 'rate_limited', fields: { 'retry-after': String } }
  })
})

t.test('a call that opens no account does not count for the limit of sign-ups', async (t) => {
  const { port, openAccount } = await startApp(t, { RATE_LIMIT_SIGNUP: '2' })
  const ada = await openAccount()
  for (const [name, status] of [['', 400], ['', 400], ['A store', 201], ['A store', 429]]) {
    const message = { method: 'tools/call', params: { name: 'createAccount', arguments: { body: { name } } } }
    const { body } = await sendMessage(port, ada, message, {}, '/mcp?tools=all')
    t.match(body.result.structuredContent, { status })
  }
})

t.test('a call has the fields of the limits that its account has set', async (t) => {
  const { port, openAccount } = await startApp(t)
  const ada = await openAccount()
  await setLimits(ada, { requests: 1, windowSeconds: 60, fields: 'x-ratelimit' })
  t.ok((await sendMessage(port, ada, { method: 'tools/list' })).body.result, 'what becomes no request has no limit')
  for (const status of [200, 429]) {
    const { structuredContent } = await callTool(port, ada, 'listPets')
    t.match(structuredContent, {
      status, fields: { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String }
    })
  }
})

t.test('messages that become no request count for the limit of an account, too', async (t) => {
  const { port, openAccount } = await startApp(t, { RATE_LIMIT_PER_ACCOUNT: '3' })
  const ada = await openAccount()
  const unknown = { method: 'tools/call', params: { name: 'nothing', arguments: {} } }
  t.match((await sendMessage(port, ada, unknown)).body.error, { code: -32_602 })
  t.match((await callTool(port, ada, 'getOrder', {})).structuredContent, { code: 'validation_failed' })
  t.ok((await sendMessage(port, ada, { method: 'resources/list' })).body.result)
  for (const message of [unknown, { method: 'resources/list' }]) {
    t.match((await sendMessage(port, ada, message)).body.error, { code: -32_000, message: /second/ })
  }
})

t.test('every message counts once for the limit of an account', async (t) => {
  const { port, openAccount } = await startApp(t, { RATE_LIMIT_PER_ACCOUNT: '3' })
  const request = (method: string, params: object = {}): object => ({ method, params })
  const call = (name: string, args: object): object => request('tools/call', { name, arguments: args })
  const text = (message: object): string => JSON.stringify({ jsonrpc: '2.0', ...message })
  const messages: Array<[name: string, message: object | string, headers?: Record<string, string>, path?: string]> = [
    ['a tool', call('listPets', {})],
    ['a tool without an answer', call('getOrder', { orderId: 'x'.repeat(9000) })],
    ['a tool that needs no key', call('createAccount', { body: { name: 'A store' } }), {}, '/mcp?tools=all'],
    ['a call without an id', text(call('listPets', {}))],
    ['ping', request('ping')],
    ['initialize', request('initialize', {
      protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'a client', version: '1' }
    })],
    ['a notification', text(request('notifications/initialized'))],
    ['an answer', text({ id: 1, result: {} })],
    ['an unknown method', request('nothing')],
    ['a batch', `[${text({ id: 1, ...request('tools/list') })}]`],
    ['no JSON', '{'],
    ['no message', '{}'],
    ['another media type', request('ping'), { 'content-type': 'text/plain' }],
    ['no answer is acceptable', call('listPets', {}), { accept: 'text/plain' }],
    ['another version', call('listPets', {}), { 'mcp-protocol-version': '1999-01-01' }],
    ['an unknown set', call('listPets', {}), {}, '/mcp?tools=some'],
    ['a body that is too large', `"${'x'.repeat(200_000)}"`]
  ]
  for (const [name, ...message] of messages) {
    const ada = await openAccount()
    t.not((await sendMessage(port, ada, ...message)).status, 429, name)
    for (const left of [1, 0]) t.match((await ada.get('/account')).headers, { ratelimit: `"default";r=${left};` }, name)
    const { status, body } = await sendMessage(port, ada, ...message)
    t.ok(status === 429 || body.error?.code === -32_000 || body.result?.structuredContent.status === 429,
      `${name}: ${status} ${JSON.stringify(body)}`)
  }
})

t.test('reading a resource counts once for the limit of an account', async (t) => {
  const { port, openAccount } = await startApp(t, { RATE_LIMIT_PER_ACCOUNT: '3' })
  const ada = await openAccount()
  const read = async (name: string): Promise<any> => (await sendMessage(
    port, ada, { method: 'resources/read', params: { uri: `petstore://${name}` } })).body
  t.equal((await ada.request('PUT', '/lab/journal', { body: { keep: 10 } })).status, 200)
  t.ok((await read('errors')).result)
  t.ok((await read('requests')).result, 'the third of three')
  for (const name of ['errors', 'requests']) t.match((await read(name)).error, { code: -32_000, message: /second/ })
})

t.test('a service without the lab has no tools', async (t) => {
  const { nobody } = await startApp(t, { LAB: 'false' })
  t.match(await nobody.post('/mcp', {}), { status: 404, body: { code: 'route_not_found' } })
})
