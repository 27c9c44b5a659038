// Only on SQLite: checks the document and its viewer.

import t from 'tap'
import type { Parameter } from '../../src/openapi/document.ts'
import { openDemo } from '../../src/seed/demo-store.ts'
import { startApp, type Answer } from '../support/app.ts'
import { assertError } from '../support/checks.ts'
import { operationsInOrder } from './document.ts'

/** Their examples carry a stale `If-Match`: they would delete the account, the key or the fault of other examples. */
const STALE = ['revokeApiKey', 'deleteAccount', 'deleteFaults', 'deleteJournal', 'deleteRequests', 'deleteLimits']

/** The webhooks of the demo store are disabled, so that they call no receiver. */
const EMPTY = ['listWebhookAttempts']
const WITHOUT_ATTEMPTS = ['getWebhookAttempt']

t.test('every example works when it is sent, in the order of the document, twice in a row', async (t) => {
  const { app, withKey, nobody, port } = await startApp(t)
  const greeting = (await openDemo(app))!(`http://127.0.0.1:${port}`)
  const client = withKey(/psk_\w+/.exec(greeting)![0])
  // The demo store has none, because every request would wait until it is counted.
  await client.request('PUT', '/lab/limits', { body: { requests: 1_000, windowSeconds: 86_400 } })
  const operations = operationsInOrder((await nobody.get('/openapi.json')).body)
  t.equal(operations.at(-1)!.operation.operationId, 'deleteAccount', 'the account is deleted last')

  for (const round of ['first', 'second']) {
    for (const { path, method, operation } of operations) {
      const { operationId, parameters = [], requestBody, security } = operation
      const inPlace = (place: string): Parameter[] => parameters.filter((parameter) => parameter.in === place)
      t.same(parameters.filter(({ example }) => example === undefined), [], `${operationId} has all examples`)
      const url = path.replace(/\{(\w+)\}/g, (_, name: string) =>
        String(inPlace('path').find((parameter) => parameter.name === name)!.example))
      const query = new URLSearchParams(inPlace('query').flatMap(({ name, example }) =>
        [example].flat().map((value): [string, string] => [name, String(value)])))
      const headers = Object.fromEntries(inPlace('header').map(({ name, example }) => [name, String(example)]))
      const [[type, { example: body }] = ['', {}]] = Object.entries(requestBody?.content ?? {})
      // The client sends a text as it is.
      if (typeof body === 'string') headers['Content-Type'] = type
      const sender = security?.length === 0 ? nobody : client
      const answer = await sender.request(method.toUpperCase(), query.size === 0 ? url : `${url}?${query}`, {
        headers, ...body === undefined ? {} : { body }
      })
      const { status } = answer
      if (WITHOUT_ATTEMPTS.includes(operationId)) {
        assertError(t, answer, 404, 'attempt_not_found')
        continue
      }
      const expected = STALE.includes(operationId) ? status === 412 : status < 300 || status === 304
      t.ok(expected, `${round}: ${operationId} is answered ${status} ${expected ? '' : answer.text}`)
      if (method === 'get' && !EMPTY.includes(operationId)) {
        t.not(answer.text, '[]', `${round}: ${operationId} finds something`)
      }
      assertReplayed(round, operationId, answer, headers)
    }
  }

  function assertReplayed (round: string, operationId: string, answer: Answer, headers: Record<string, string>): void {
    if (headers['Idempotency-Key'] === undefined || STALE.includes(operationId)) return
    t.equal(answer.headers['idempotency-replayed'], round === 'first' ? undefined : 'true', `${round}: ${operationId}`)
  }
})

t.test('operations that delete have ids of their own, and every write has a key of its own', async (t) => {
  const { nobody } = await startApp(t)
  const operations = operationsInOrder((await nobody.get('/openapi.json')).body)
  const keys = operations.flatMap(({ operation: { parameters = [] } }) =>
    parameters.filter(({ name }) => name === 'Idempotency-Key').map(({ example }) => example))
  t.equal(new Set(keys).size, keys.length)
  for (const { path, method, operation } of operations) {
    if (method !== 'delete' || STALE.includes(operation.operationId)) continue
    const [own] = operation.parameters!.filter((parameter) => parameter.in === 'path')
    const others = operations
      .filter((other) => other.operation !== operation)
      .flatMap(({ path: otherPath, operation: { parameters = [] } }) => parameters
        .filter(({ in: place, name }) => (place === 'path' && otherPath.startsWith(path)) || name === own!.name))
      .flatMap(({ example }) => example)
    t.notOk(others.includes(own!.example), `${operation.operationId} ${String(own!.example)}`)
  }
})
