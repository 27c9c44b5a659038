// Only on PostgreSQL: transactions of SQLite run one after another.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { markKeyUsed } from '../../src/accounts/commands.ts'
import { countRequests } from '../../src/limits/commands.ts'
import { deliverUnsubscribedMessages } from '../../src/messages/delivery-status.ts'
import { database, freshDatabase } from '../support/database.ts'
import { becomes, DELIVERING, send } from '../support/delivery.ts'
import { eventually, openReceiver } from '../support/receiver.ts'

/**
 * Maximum time for an action to reach its lock, in ms: the service gives a lock up after it. A machine that takes
 * longer tests less, and fails nothing.
 */
const ARRIVAL_MS = 100

const skip = database === 'sqlite' && 'transactions of SQLite run one after another'

/**
 * The transactions of the lab and of delivery workers lock rows in one order, so none waits for another that waits for
 * it. Another session stops the first one between two of its locks, until the second one waits as well.
 */
t.test('the lab and delivery workers lock rows in one order', { skip }, async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const session = new pg.Client({ connectionString: DATABASE_URL })
  await session.connect()
  t.teardown(async () => { await session.end() })
  // The server finds a deadlock before the service gives a lock up, and counts it.
  await session.query(`ALTER DATABASE ${session.database} SET deadlock_timeout = '20ms'`)
  const quiet = await startApp(t, { DATABASE_URL })

  /** @returns the number of other sessions of the database under a condition */
  async function sessions (condition: string): Promise<number> {
    // A transaction sees the activity as it was at its first look.
    await session.query('SELECT pg_stat_clear_snapshot()')
    const { rowCount } = await session.query(`
      SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND ${condition}`)
    return rowCount ?? 0
  }

  /** Waits until so many sessions wait for a lock. */
  async function untilWaiting (count: number, until = (): boolean => false): Promise<void> {
    for (const end = performance.now() + ARRIVAL_MS; performance.now() < end && !until();) {
      if (await sessions("wait_event_type = 'Lock'") >= count) return
      await sleep(10)
    }
  }

  /** Runs two actions: the second when the first waits for a lock of the session, until it waits as well or ends. */
  async function cross (
    lock: string, first: () => Promise<Answer>, second: () => Promise<unknown> | void
  ): Promise<void> {
    await session.query('BEGIN')
    await session.query(lock)
    const answer = first()
    await untilWaiting(1)
    let hasEnded = false
    void second()?.then(() => { hasEnded = true })
    await untilWaiting(2, () => hasEnded)
    await session.query('COMMIT')
    const { status, text } = await answer
    t.ok(status === 200 || status === 503, text)
  }

  const firstRow = (table: string, id: string, { account }: Client): string =>
    `SELECT 1 FROM ${table} WHERE account_id = ${account} ORDER BY ${id} LIMIT 1 FOR UPDATE`

  const restore = async (ada: Client, headers = {}): Promise<Answer> => {
    const { body: [{ id }] } = await ada.get('/lab/snapshots')
    return await ada.post(`/lab/snapshots/${id}/restore`, undefined, headers)
  }

  await t.test('a restore beside a worker that settles messages', async (t) => {
    const [ada, bob] = [await quiet.openAccount(), await quiet.openAccount()]
    const messages = [await send(ada), await send(ada)]
    const ofBob = await send(bob)
    await ada.post('/lab/snapshots', {})
    const settle = async (): Promise<unknown> =>
      await quiet.app.commit(deliverUnsubscribedMessages, { upTo: Number.MAX_SAFE_INTEGER }, { account: null })
    await cross(firstRow('messages', 'position', ada), async () => await restore(ada), settle)
    await becomes(bob, ofBob, 'delivered')
    await settle()
    for (const id of messages) await becomes(ada, id, 'delivered')
    const types = (await ada.get('/events')).body.map(({ type }: { type: string }) => type)
    const since = types.slice(types.lastIndexOf('store.replaced') + 1)
    t.equal(since.filter((type: string) => type === 'message.delivered').length, 2, 'once each')
  })

  const service = await startApp(t, { ...DELIVERING, DATABASE_URL })

  /** Opens a store whose newest message has a call in flight. */
  async function deliveringStore (): Promise<{ ada: Client, respond: () => void }> {
    const ada = await service.openAccount()
    // The first webhook, which receives nothing.
    await ada.post('/webhooks', { url: 'http://127.0.0.1:9', events: ['pet.created'] })
    await becomes(ada, await send(ada), 'delivered')
    let respond = (): void => {}
    const receiver = await openReceiver(t, (response) => { respond = () => { response.writeHead(204).end() } })
    await ada.post('/webhooks', { url: receiver.url, events: ['message.created'] })
    await send(ada)
    await receiver.until(1)
    await ada.post('/lab/snapshots', {})
    return { ada, respond: () => { respond() } }
  }

  const actions: Record<string, (ada: Client) => [lock: string, action: () => Promise<Answer>]> = {
    'a restore': (ada) => [firstRow('messages', 'position', ada), async () => await restore(ada)],
    'a reset': (ada) => [firstRow('messages', 'position', ada), async () => await ada.post('/lab/reset', {})],
    'an advance': (ada) =>
      [firstRow('webhooks', 'id', ada), async () => await ada.post('/lab/clock/advance', { seconds: 60 })]
  }
  for (const [name, actionOf] of Object.entries(actions)) {
    await t.test(`${name} beside the completion of a delivery`, async (t) => {
      const { ada, respond } = await deliveringStore()
      await cross(...actionOf(ada), respond)
      t.pass('both have ended')
    })
  }

  await t.test('two restores with different Idempotency-Keys', async (t) => {
    const { ada } = await deliveringStore()
    const keyed = async (key: string): Promise<Answer> => await restore(ada, { 'idempotency-key': key })
    const answers: Array<Promise<Answer>> = []
    await cross(`SELECT 1 FROM accounts WHERE id = ${ada.account} FOR KEY SHARE`, async () => await keyed('one'),
      () => { answers.push(keyed('two')) })
    t.same((await Promise.all(answers)).map(({ status }) => status), [200])
  })

  await t.test('new limits beside a request that is counted, and the last use of its key', async (t) => {
    const { app, openAccount } = quiet
    const ada = await openAccount()
    const limits = { requests: 1_000, windowSeconds: 60 }
    const put = async ({ request }: Client): Promise<Answer> => await request('PUT', '/lab/limits', { body: limits })
    await put(ada)
    const { key: text, account } = ada as { key: string, account: number }
    const { body: [{ id: key }] } = await ada.get('/account/keys')
    const used: Array<Promise<unknown>> = []
    const there = service.withKey(text, account)
    await cross(firstRow('api_keys', 'id', ada), async () => await put(there), () => {
      used.push(
        app.commit(countRequests, { account, key, arrivedAt: Date.now() }, { account: null }),
        app.commit(markKeyUsed, { account, key, at: Date.now() }, { account: null }))
    })
    t.match(await Promise.all(used), [{ record: { limits } }, {}])
  })

  await quiet.app.close()
  await service.app.close()
  // A session reports its deadlocks when it ends, at the latest.
  await eventually(async () => (await sessions("backend_type = 'client backend'")) === 0)
  const { rows } = await session.query('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()')
  t.same(rows, [{ deadlocks: '0' }])
})
