import { request as httpRequest } from 'node:http'
import t from 'tap'
import { startApp, type Client } from '../support/app.ts'
import { assertError, assertResponse } from '../support/checks.ts'
import { loadFixtures, mergeTables } from '../support/fixture.ts'
import { newFault } from './fixture.ts'

/** The writes that take an Idempotency-Key, by operationId. */
const WRITES = mergeTables((await loadFixtures()).map(({ keyedWrites }) => keyedWrites))

t.test('a write whose answer was lost happened once, and its retry replays', async (t) => {
  const running = await startApp(t)
  const { openAccount } = running

  /** Sends a request, and returns whether its connection was closed without a byte. */
  async function isLost (
    { key }: Client, method: string, path: string, body: unknown, headers: Record<string, string>
  ): Promise<boolean> {
    const media = path === '/lab/snapshots/import' ? 'application/x-ndjson' : 'application/json'
    const type = body === undefined ? {} : { 'content-type': media }
    return await new Promise((resolve) => {
      const asked = httpRequest({
        host: '127.0.0.1',
        port: running.port,
        method,
        path,
        agent: false,
        headers: { authorization: `Bearer ${key}`, ...type, ...headers }
      }, (response) => {
        response.resume()
        resolve(false)
      })
      asked.on('error', () => { resolve(true) })
      asked.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }

  for (const [name, { prepare, shows }] of Object.entries(WRITES)) {
    await t.test(name, async (t) => {
      const ada = await openAccount()
      const [method, path, body] = await prepare(ada)
      const headers = { 'idempotency-key': 'once' }
      await newFault(ada, { operation: name, effect: { type: 'lose_answer' } })
      const before = await ada.get(shows)
      t.ok(await isLost(ada, method, path, body, headers))
      const after = await ada.get(shows)
      // Deliveries of tests and of events that are sent again are no records.
      if (!['testWebhook', 'resendEvents'].includes(name)) {
        t.not(after.text, before.text, 'the write is committed when the connection closes')
      }
      const retried = await ada.request(method, path, { headers, body })
      t.ok(retried.status < 300, retried.text)
      t.equal(retried.headers['idempotency-replayed'], 'true')
      t.equal((await ada.get(shows)).text, after.text, 'one effect')
      const { body: events } = await ada.get('/events?limit=100')
      const hits = events.filter(({ type }: any) => type === 'fault.hit')
      if (!['advanceClock'].includes(name)) t.match(hits, [{ data: { operation: name } }])
    })
  }

  await t.test('after the deletion of an account the retry is 401', async (t) => {
    const ada = await openAccount()
    await newFault(ada, { operation: 'deleteAccount', effect: { type: 'lose_answer' } })
    t.ok(await isLost(ada, 'DELETE', '/account', undefined, { 'idempotency-key': 'end' }))
    assertError(t, await ada.delete('/account', { 'idempotency-key': 'end' }), 401, 'unauthorized')
  })

  await t.test('a key that revoked itself is 401 as well', async (t) => {
    const ada = await openAccount()
    const { body: { apiKey, id } } = await ada.post('/account/keys', {})
    const other = running.withKey(apiKey)
    await newFault(ada, { operation: 'revokeApiKey', effect: { type: 'lose_answer' } })
    t.ok(await isLost(other, 'DELETE', `/account/keys/${id}`, undefined, { 'idempotency-key': 'end' }))
    assertError(t, await other.delete(`/account/keys/${id}`, { 'idempotency-key': 'end' }), 401, 'unauthorized')
  })

  await t.test('nothing of the lab is reached without the setting', async (t) => {
    const { nobody, openAccount } = await startApp(t, { LAB: 'false' })
    const ada = await openAccount()
    for (const [method, path] of [['GET', '/lab/faults'], ['POST', '/lab/reset'], ['POST', '/lab/clock/advance']]) {
      assertError(t, await ada.request(method!, path!, { body: {} }), 404, 'route_not_found')
    }
    const { body: document } = await nobody.get('/openapi.json')
    t.same(Object.keys(document.paths).filter((path) => path.startsWith('/lab')), [])
    t.notOk(document.tags.some(({ name }: any) => name === 'lab'))
    const codes: string[] = document.components.schemas.ErrorCode.enum
    const types: string[] = document.components.schemas.EventType.enum
    for (const code of ['injected_fault', 'fault_not_found', 'snapshot_too_large']) t.ok(codes.includes(code), code)
    for (const type of ['fault.hit', 'clock.advanced', 'store.replaced']) t.ok(types.includes(type), type)
    assertResponse(t, await ada.get('/pets'), 200, [])
  })
})
