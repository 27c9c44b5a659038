import t, { type Test } from 'tap'
import { startApp, type Answer, type Client, type TestApp } from '../support/app.ts'
import { assertError, readerOf } from '../support/checks.ts'
import { operationsOf, type Operation } from '../support/operations.ts'

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

/** The path of an operation with ids that the service accepts. */
function pathOf ({ path }: Operation): string {
  return path.replace(/\{\w+\}/g, '1').replace('/messages/1', '/messages/msg_0000000001k7c2q9x4v0ayzr3m')
}

const JSON_TYPE = { 'content-type': 'application/json' }

t.test('every operation', async (t) => {
  const { owner, nobody, reader, operations } = await start(t, { BODY_LIMIT: '1024' })
  const withBody = operations.filter(({ body }) => body !== undefined)
  const writes = operations.filter(({ method, operationId }) => method !== 'GET' && operationId !== 'createAccount')

  /** Sends a request to each operation, by its owner, and expects the same error. */
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
    await client.request(operation.method, `${pathOf(operation)}?x=${'x'.repeat(8_200)}`))
  await expectError(operations, 431, 'headers_too_large', async (operation, client) =>
    await client.request(operation.method, pathOf(operation), { headers: { filler: 'x'.repeat(17_000) } }))
  await expectError(operations, 400, 'bad_request', async (operation, client) =>
    await client.request(operation.method, `${pathOf(operation)}?x=#`))
  await expectError(operations, 400, 'validation_failed', async (operation, client) =>
    await client.request(operation.method, `${pathOf(operation)}?unknown=1`, operation.body && { body: {} }))
  await expectError(withBody, 413, 'payload_too_large', async (operation, client) =>
    await client.request(operation.method, pathOf(operation), { body: { filler: 'x'.repeat(2_000) } }))
  await expectError(withBody, 400, 'invalid_json', async (operation, client) =>
    await client.request(operation.method, pathOf(operation), { body: '{', headers: JSON_TYPE }))
  await expectError(withBody, 400, 'invalid_content_type', async (operation, client) =>
    await client.request(operation.method, pathOf(operation), { body: 'x', headers: { 'content-type': 'text/plain' } }))
  await expectError(writes, 403, 'read_only_key', async (operation) =>
    await reader.request(operation.method, pathOf(operation)))
  await expectError(operations.filter(({ operationId }) => operationId !== 'createAccount'), 401, 'unauthorized',
    async (operation) => await nobody.request(operation.method, pathOf(operation)))
})

t.test('every operation counts in the limits', async (t) => {
  const { owner, nobody, operations } = await start(t, { RATE_LIMIT_PER_ACCOUNT: '1', RATE_LIMIT_SIGNUP: '1' })
  for (const operation of operations) {
    const client = operation.operationId === 'createAccount' ? nobody : owner
    const body = operation.operationId === 'createAccount' ? { name: 'A store' } : undefined
    assertError(t, await client.request(operation.method, pathOf(operation), { body }), 429, 'rate_limited', 'seconds',
      operation.operationId)
  }
})

t.test('every operation that needs a key is refused by a fault, with each status', async (t) => {
  const { owner, operations } = await start(t)
  for (const operation of operations) {
    if (operation.operationId === 'createAccount') continue
    for (const status of [429, 500, 502, 503, 504]) {
      const fault = { operation: operation.operationId, effect: { type: 'refuse', status } }
      t.equal((await owner.post('/lab/faults', fault)).status, 201)
      assertError(t, await owner.request(operation.method, pathOf(operation)), status, 'injected_fault', 'lab',
        `${operation.operationId} ${status}`)
    }
  }
})
