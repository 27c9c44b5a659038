import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startApp, type Answer, type Client, type TestApp } from '../support/app.ts'
import { assertError, readerOf } from '../support/checks.ts'
import { contractOf } from '../support/contract.ts'
import { bodyOf, operationsOf, pathOf, stockedStore, type Operation } from '../support/operations.ts'
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
  const { owner, nobody, reader, operations } = await start(t, { BODY_LIMIT: '1024' })
  const withBody = operations.filter(({ body }) => body !== undefined)
  const writes = operations.filter(({ method, operationId }) => method !== 'GET' && operationId !== 'createAccount')

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
  await expectError(withBody, 413, 'payload_too_large', async (operation, client) =>
    await client.request(operation.method, anyPathOf(operation), { body: { filler: 'x'.repeat(2_000) } }))
  await expectError(withBody, 400, 'invalid_json', async (operation, client) =>
    await client.request(operation.method, anyPathOf(operation), { body: '{', headers: JSON_TYPE }))
  await expectError(withBody, 400, 'invalid_content_type', async (operation, client) =>
    await client.request(operation.method, anyPathOf(operation), { body: 'x', headers: TEXT_TYPE }))
  await expectError(writes, 403, 'read_only_key', async (operation) =>
    await reader.request(operation.method, anyPathOf(operation)))
  await expectError(operations.filter(({ operationId }) => operationId !== 'createAccount'), 401, 'unauthorized',
    async (operation) => await nobody.request(operation.method, anyPathOf(operation)))

  const ids = await stockedStore(owner)
  await expectError(operations, 412, 'precondition_failed', async (operation, client) =>
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
    for (const status of [429, 500, 502, 503, 504]) {
      const fault = { operation: operation.operationId, effect: { type: 'refuse', status } }
      t.equal((await owner.post('/lab/faults', fault)).status, 201)
      assertError(t, await owner.request(operation.method, anyPathOf(operation)), status, 'injected_fault', 'lab',
        `${operation.operationId} ${status}`)
    }
  }
})
