import t from 'tap'
import { deliverUnsubscribedMessages } from '../../src/messages/delivery-status.ts'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { freshDatabase } from '../support/database.ts'
import { newCategory, newPet } from '../support/fixtures.ts'
import { eventually } from '../support/receiver.ts'
import { startService } from '../torture/service.ts'
import { newFault } from './fixture.ts'

const CLIENTS = 64

t.test('exactly as many requests are hit as the fault says, over three processes', async (t) => {
  const url = await freshDatabase(t)
  const settings = {
    DATABASE_URL: url, LAB: 'true', DELIVERY: 'false', LOG_LEVEL: 'error', REQUEST_TIMEOUT_MS: '60000'
  }
  const services = await Promise.all(Array.from({ length: 3 }, async () => await startService(settings)))
  t.teardown(async () => { await Promise.all(services.map(async ({ kill }) => { await kill() })) })
  const send = async (i: number, path: string, key = '', init: RequestInit = {}): Promise<Response> =>
    await fetch(`http://127.0.0.1:${services[i % 3]!.port}${path}`, {
      ...init, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    })
  const account = await send(0, '/accounts', '', { method: 'POST', body: '{"name":"A store"}' })
  const { apiKey } = await account.json() as { apiKey: string }
  const fault = { operation: 'listPets', effect: { type: 'refuse', status: 503 }, after: 17, times: 50 }
  const created = await send(0, '/lab/faults', apiKey, { method: 'POST', body: JSON.stringify(fault) })
  const { id } = await created.json() as { id: number }

  /** Sends five requests of each client. @returns the number of those that were hit */
  async function hitsOfRound (): Promise<number> {
    const answers = (await Promise.all(Array.from({ length: CLIENTS }, async (_, client) => {
      const own: Response[] = []
      for (let n = 0; n < 5; n++) own.push(await send(client + n, '/pets', apiKey))
      return own
    }))).flat()
    t.same(answers.filter(({ status }) => status !== 200 && status !== 503), [])
    // On a slow machine, a request can be 503 by itself.
    return answers.filter(({ headers }) => headers.has('petstore-fault')).length
  }

  // A process looks for new faults twice a second, and later on a busy machine.
  let hits = 0
  await eventually(async () => {
    hits += await hitsOfRound()
    return hits >= 50
  }, 60_000, () => `${hits} of 50 requests were hit`)
  t.equal(hits + await hitsOfRound(), 50)
  t.match(await (await send(2, `/lab/faults/${id}`, apiKey)).json(), { passed: 17, hits: 50 })
})

t.test('a clock that one process moved is that of the others', async (t) => {
  const url = await freshDatabase(t)
  const apps = [await startApp(t, { DATABASE_URL: url }), await startApp(t, { DATABASE_URL: url })]
  const ada = await apps[0]!.openAccount()
  const elsewhere: Client = apps[1]!.withKey(ada.key!, ada.account)
  const petId = await newPet(elsewhere)
  await newCategory(ada)
  const moved = await ada.post('/lab/clock/advance', { to: '2031-01-01T00:00:00Z' })
  t.equal(moved.status, 200)
  const written: Answer = await elsewhere.post('/messages', { message: 'x' })
  t.match(written.body.createdAt, /^2031/, 'a write has the new time at once')
  await eventually(async () => (await elsewhere.get(`/pets/${petId}`)).status === 410)
  const { body: events } = await ada.get('/events?limit=100')
  const times = events.map(({ timestamp }: { timestamp: string }) => timestamp)
  t.same(times, [...times].sort(), 'the time of the feed never goes back')

  const fault = await newFault(ada, { operation: 'listPets', effect: { type: 'refuse', status: 500 } })
  await eventually(async () => (await elsewhere.get('/pets')).headers['petstore-fault'] === String(fault))
})

t.test('a message is settled at the time of its account, whatever the process knows of the clock', async (t) => {
  const { app, openAccount } = await startApp(t)
  const ada = await openAccount()
  await ada.post('/messages', { message: 'x' })
  // Another process moves the clock, and this one does not learn of it.
  const move = `UPDATE accounts SET clock_offset_seconds = 864000 WHERE id = ${ada.account}`
  await app.database.transact(async ({ run }) => await run([{ sql: move, values: [] }]))
  const earliest = Date.now() + 864_000_000
  await app.commit(deliverUnsubscribedMessages, { upTo: Number.MAX_SAFE_INTEGER }, { account: null })
  const { body: [created, delivered] } = await ada.get('/events')
  t.match([created.type, delivered.type], ['message.created', 'message.delivered'])
  t.ok(Date.parse(delivered.timestamp) >= earliest, delivered.timestamp)
})

t.test('moves of a clock by several processes at once all succeed, and each begins where the last ended', async (t) => {
  const url = await freshDatabase(t)
  const apps = await Promise.all(Array.from({ length: 3 }, async () => await startApp(t, { DATABASE_URL: url })))
  const ada = await apps[0]!.openAccount()
  const clients = apps.map(({ withKey }) => withKey(ada.key!, ada.account))
  /** On a slow machine, a move can wait for longer than a write may: 503. */
  const move = async (client: Client, key: string): Promise<Answer> => {
    const answer = await client.post('/lab/clock/advance', { seconds: 1 }, { 'idempotency-key': key })
    return answer.status === 503 ? await move(client, key) : answer
  }
  const moves = await Promise.all(Array.from({ length: 45 }, async (_, i) => await move(clients[i % 3]!, `${i}`)))
  t.same(moves.filter(({ status }) => status !== 200).map(({ text }) => text), [])
  const { body: events } = await ada.get('/events?limit=100')
  const times: string[] = events.flatMap(({ data: { from, to } }: any) => [from, to])
  t.equal(times.length, 90)
  t.same(times, times.toSorted())
})
