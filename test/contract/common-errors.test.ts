// Only on SQLite: no record decides these errors; the tests of keys and faults run the statements.

import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startApp, type Answer, type Client, type TestApp } from '../support/app.ts'
import { assertError, readerOf } from '../support/checks.ts'
import { contractOf } from '../support/contract.ts'
import { bodyOf, operationsOf, pathOf, READING_POSTS, stockedStore, type Operation } from '../support/operations.ts'
import { sendBytes, watchConnections } from '../support/socket.ts'
import { ifMatch, key } from './fields.ts'

// The errors of all operations that no record decides. Their answers are compared with the document, as all answers
// are, so that each operation is shown to answer what it documents.

/** A service, and a client of each kind. */
interface Parties extends TestApp { owner: Client, reader: Client, operations: Operation[] }

async function start (t: Test, settings: Record<string, string> = {}): Promise<Parties> {
  const service = await startApp(t, settings)
  const owner = await service.openAccount()
  const operations = operationsOf(service.app)
  return { ...service, owner, reader: await readerOf(owner, service.withKey), operations }
}

/** The path of an operation with ids that the service accepts, of no record. */
function anyPathOf ({ path }: Operation): string {
  return path.replace(/\{\w+\}/g, '1').replace('/messages/1', '/messages/msg_0000000001k7c2q9x4v0ayzr3m')
}

const JSON_TYPE = { 'content-type': 'application/json' }
const TEXT_TYPE = { 'content-type': 'text/plain' }

t.test('every operation', async (t) => {
  const { owner, nobody, operations } = await start(t, { BODY_LIMIT: '1024' })
  const withBody = operations.filter(({ body }) => body !== undefined)

  /** Sends a request to each operation, with a key where it needs one, and expects the same error. */
  async function expectError (
    operations: Operation[], status: number, code: string,
    send: (operation: Operation, client: Client) => Promise<Answer>
  ): Promise<void> {
    for (const operation of operations) {
      const client = operation.operationId === 'createAccount' ? nobody : owner
      assertError(t, await send(operation, client), status, code, /\w/, `${operation.operationId} ${code}`)
    }
  }

  t.ok(operations.length > 40)
  await expectError(operations, 414, 'uri_too_long', async (operation, client) =>
    await client.request(operation.method, `${anyPathOf(operation)}?x=${'x'.repeat(8_200)}`))
  await expectError(operations, 431, 'headers_too_large', async (operation, client) =>
    await client.request(operation.method, anyPathOf(operation), { headers: { filler: 'x'.repeat(17_000) } }))
  await expectError(operations, 400, 'bad_request', async (operation, client) =>
    await client.request(operation.method, `${anyPathOf(operation)}?x=#`))
  await expectError(operations, 400, 'validation_failed', async (operation, client) =>
    await client.request(operation.method, `${anyPathOf(operation)}?unknown=1`, operation.body && { body: {} }))
  // The file of a store has a limit of its own.
  const limited = withBody.filter(({ mediaType }) => mediaType === 'application/json')
  await expectError(limited, 413, 'payload_too_large', async (operation, client) =>
    await client.request(operation.method, anyPathOf(operation), { body: { filler: 'x'.repeat(2_000) } }))
  await expectError(withBody, 400, 'invalid_json', async (operation, client) =>
    await client.request(operation.method, anyPathOf(operation), {
      body: '{', headers: { 'content-type': operation.mediaType! }
    }))
  await expectError(withBody, 400, 'invalid_content_type', async (operation, client) =>
    await client.request(operation.method, anyPathOf(operation), { body: 'x', headers: TEXT_TYPE }))

  const ids = await stockedStore(owner)
  await owner.request('PUT', '/lab/limits', { body: { requests: 1_000_000, windowSeconds: 60 } })
  // The store has no attempt, because its service does not deliver.
  const found = operations.filter(({ operationId }) => operationId !== 'getWebhookAttempt')
  await expectError(found, 412, 'precondition_failed', async (operation, client) =>
    await client.request(operation.method, pathOf(operation, ids), {
      headers: ifMatch('"other"'), body: bodyOf(operation, ids)
    }))
  const keyed = operations.filter(({ parameters }) => parameters.some(({ name }) => name === 'Idempotency-Key'))
  t.equal((await owner.post('/messages', { message: 'The first use' }, key('used'))).status, 201)
  await expectError(keyed, 422, 'idempotency_key_reused', async (operation, client) =>
    await client.request(operation.method, pathOf(operation, ids), {
      headers: key('used'), body: bodyOf(operation, ids)
    }))
})

t.test('every operation that needs a key', async (t) => {
  const { nobody, reader, openAccount, withKey, operations } = await start(t)
  const bare = 'Bearer realm="petstore"'
  const closed = operations.filter(({ operationId }) => operationId !== 'createAccount')
  // Not even the body is read.
  const broken = { headers: { ...JSON_TYPE, 'content-length': '1' }, body: '{' }

  await t.test('is refused without a key', async (t) => {
    for (const operation of closed) {
      const answer = await nobody.request(operation.method, anyPathOf(operation), broken)
      assertError(t, answer, 401, 'unauthorized', 'Authorization: Bearer', operation.operationId)
      t.equal(answer.headers['www-authenticate'], bare)
      const basic = { authorization: 'Basic YWRhOmFkYQ==' }
      const other = await nobody.request(operation.method, anyPathOf(operation), { headers: basic })
      assertError(t, other, 401, 'unauthorized', 'Bearer <API_KEY>', operation.operationId)
      t.equal(other.headers['www-authenticate'], bare)
    }
  })

  await t.test('is refused with an invalid key, and with that of a deleted account', async (t) => {
    const gone = await openAccount()
    await gone.delete('/account')
    for (const operation of closed) {
      for (const key of ['not-a-key', `${gone.key}x`, gone.key!]) {
        const answer = await withKey(key).request(operation.method, anyPathOf(operation))
        assertError(t, answer, 401, 'unauthorized', /key/i, operation.operationId)
        t.equal(answer.headers['www-authenticate'], `${bare}, error="invalid_token"`)
      }
    }
  })

  await t.test('is refused with a read-only key if it writes', async (t) => {
    const writes = closed.filter(({ method, operationId }) => method !== 'GET' && !READING_POSTS.includes(operationId))
    for (const operation of writes) {
      const answer = await reader.request(operation.method, anyPathOf(operation), broken)
      assertError(t, answer, 403, 'read_only_key', 'may only read', operation.operationId)
      t.equal(answer.headers['www-authenticate'], `${bare}, error="insufficient_scope"`)
    }
  })
})

t.test('every operation names the parameter that it refuses', async (t) => {
  const { owner, operations } = await start(t)
  let ids = 0
  let lists = 0
  for (const operation of operations) {
    const { operationId, method, path, parameters, body } = operation
    const idName = intIdOf(operation)
    if (idName !== undefined) {
      ids++
      for (const id of ['0', '-1', '01', 'x', '1.5', '9223372036854775808']) {
        const answer = await owner.request(method, path.replace(`{${idName}}`, id), { body: body && {} })
        assertError(t, answer, 400, 'validation_failed', idName, `${operationId} ${id}`)
      }
    }
    if (!parameters.some(({ name }) => name === 'limit')) continue
    lists++
    const known = parameters.some(({ name }) => name === 'cursor') ? 'cursor' : undefined
    for (const query of ['limit=0', 'limit=101', 'limit=x', ...known === undefined ? [] : ['cursor=']]) {
      const answer = await owner.get(`${path.replace(/\{\w+\}/, '1')}?${query}`)
      assertError(t, answer, 400, 'validation_failed', query.split('=')[0]!, `${operationId} ${query}`)
    }
  }
  t.ok(ids > 15 && lists > 5, `${ids} with an id and ${lists} lists`)
})

/** Returns the name of the id in the path of an operation, if it is a number. */
function intIdOf ({ parameters }: Operation): string | undefined {
  return parameters.find((parameter) => parameter.in === 'path' && parameter.schema.format === 'int64')?.name
}

t.test('every operation that arrives too slowly, or while the service stops', async (t) => {
  await t.test('is answered 408', async (t) => {
    const { app, config, port } = await startApp(t, { REQUEST_TIMEOUT_MS: '300' })
    await Promise.all(operationsOf(app).map(async (operation) => {
      await assertRawError(t, { app, config }, operation, 'request_timeout', await sendBytes(port, lineOf(operation)))
    }))
  })

  await t.test('is answered 503', async (t) => {
    const { app, config, port } = await startApp(t)
    const operations = operationsOf(app)
    let send = (_bytes: string): void => {}
    const rest = new Promise<string>((resolve) => { send = resolve })
    const heardFrom = watchConnections(app.server)
    const answers = operations.map(async (operation) => await sendBytes(port, lineOf(operation), rest))
    await heardFrom(operations.length)
    const stopped = app.close()
    await sleep(250)
    send('Host: x\r\n\r\n')
    for (const [i, operation] of operations.entries()) {
      await assertRawError(t, { app, config }, operation, 'shutting_down', await answers[i])
    }
    await stopped
  })
})

function lineOf (operation: Operation): string {
  return `${operation.method} ${anyPathOf(operation)} HTTP/1.1\r\n`
}

async function assertRawError (
  t: Test, { app, config }: Pick<TestApp, 'app' | 'config'>, operation: Operation, code: string, answer: unknown
): Promise<void> {
  const { body } = answer as Answer
  t.equal(body?.code, code, `${operation.operationId} ${code}`)
  t.equal(contractOf(app, config).problemOf(operation.method, anyPathOf(operation), answer as Answer), undefined)
}

t.test('every operation counts in the limits', async (t) => {
  const { owner, nobody, operations } = await start(t, { RATE_LIMIT_PER_ACCOUNT: '1', RATE_LIMIT_SIGNUP: '1' })
  for (const operation of operations) {
    const client = operation.operationId === 'createAccount' ? nobody : owner
    const body = operation.operationId === 'createAccount' ? { name: 'A store' } : undefined
    const answer = await client.request(operation.method, anyPathOf(operation), { body })
    assertError(t, answer, 429, 'rate_limited', 'seconds', operation.operationId)
  }
})

t.test('every operation that needs a key is refused by a fault, with each status', async (t) => {
  const { owner, operations } = await start(t)
  for (const operation of operations) {
    if (operation.operationId === 'createAccount') continue
    for (const status of [408, 429, 500, 502, 503, 504]) {
      const fault = { operation: operation.operationId, effect: { type: 'refuse', status } }
      t.equal((await owner.post('/lab/faults', fault)).status, 201)
      assertError(t, await owner.request(operation.method, anyPathOf(operation)), status, 'injected_fault', 'Lab fault',
        `${operation.operationId} ${status}`)
    }
  }
})
