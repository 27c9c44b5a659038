// Only on PostgreSQL: one process serves a SQLite file.

import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { startApp, type Answer, type Client } from '../../support/app.ts'
import { database } from '../../support/database.ts'
import { loadFixtures, mergeTables } from '../../support/fixture.ts'

/**
 * Two services on one database that decide about the same rows at the same moment. Another session locks the rows until
 * both have read what a weaker lock, or none, lets them read. Then exactly one of them may succeed.
 */

/** Maximum time for both requests to reach the lock. A machine that takes longer tests less, and fails nothing. */
const ARRIVAL_MS = 300

const skip = database === 'sqlite' && 'one process serves a SQLite file'

t.test('two services that decide about the same rows', { skip }, async (t) => {
  const one = await startApp(t)
  const { DATABASE_URL } = one.config
  const other = await startApp(t, { DATABASE_URL })

  /** Opens a store. @returns its clients at both services, whose keys have been used before */
  async function openStore (): Promise<[Client, Client]> {
    const ada = await one.openAccount()
    const there = other.withKey(ada.key!, ada.account)
    await there.get('/account')
    await sleep(50)
    return [ada, there]
  }

  /** Sends two requests while another session holds the lock of some rows, which ends when both have arrived. */
  async function meet (lock: string, send: () => Array<Promise<Answer>>): Promise<Answer[]> {
    const session = new pg.Client({ connectionString: DATABASE_URL })
    await session.connect()
    try {
      await session.query('BEGIN')
      await session.query(lock)
      const sent = send()
      await untilWaiting(session, sent.length)
      await session.query('COMMIT')
      return await Promise.all(sent)
    } finally {
      await session.end()
    }
  }

  /** Waits until so many sessions wait for a lock. Not every request has to: some wait in their service. */
  async function untilWaiting (session: pg.Client, count: number): Promise<void> {
    for (const end = performance.now() + ARRIVAL_MS; performance.now() < end;) {
      await sleep(10)
      // A transaction sees the activity as it was at its first look.
      await session.query('SELECT pg_stat_clear_snapshot()')
      const { rows } = await session.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
      if (rows.length >= count) return
    }
  }

  const changes = mergeTables((await loadFixtures()).map(({ changes }) => changes))
  for (const [operationId, prepare] of Object.entries(changes)) {
    if (operationId === 'deleteAccount') continue
    await t.test(`${operationId} with one If-Match succeeds in one of them`, async (t) => {
      const [ada, there] = await openStore()
      const { read, method, path, bodies: [first, second = first] } = await prepare(ada)
      const { headers: { etag } } = await ada.get(read)
      const headers = { 'if-match': etag! }
      // UPDATE waits for this lock, and so does FOR UPDATE, but FOR KEY SHARE does not.
      const tables = ['categories', 'pets', 'orders', 'inventory_items', 'webhooks', 'api_keys']
      const lock = `WITH ${tables.map((table) => `${table} AS (
        SELECT 1 FROM ${table} WHERE account_id = ${ada.account} FOR NO KEY UPDATE)`).join(', ')}
        SELECT ${tables.map((table) => `(SELECT count(*) FROM ${table})`).join(', ')}`
      const answers = await meet(lock, () => [
        ada.request(method, path, { headers, body: first }), there.request(method, path, { headers, body: second })
      ])
      const statuses = answers.map(({ status }) => status).sort()
      t.match(String(statuses), /^20[04],(404|412)$/, answers.map(({ text }) => text).join(' '))
    })
  }

  const keysOf = (account: number): string => `SELECT id FROM api_keys WHERE account_id = ${account} FOR UPDATE`

  await t.test('of two keys that revoke each other, one stays', async (t) => {
    const [ada] = await openStore()
    const { body: first } = await ada.get('/account/keys')
    const { body: key } = await ada.post('/account/keys', {})
    const bob = other.withKey(key.apiKey, ada.account)
    await bob.get('/account')
    await sleep(50)
    const answers = await meet(keysOf(ada.account!), () => [
      ada.delete(`/account/keys/${key.id}`), bob.delete(`/account/keys/${first[0].id}`)
    ])
    t.equal(answers.filter(({ status }) => status === 204).length, 1, answers.map(({ text }) => text).join(' '))
  })

  for (const [path, limit, body] of [['/webhooks', 20, { url: 'https://example.com/' }], ['/account/keys', 100, {}]] as const) {
    await t.test(`${path} has no more than ${limit} records, also when both create the last`, async (t) => {
      const [ada, there] = await openStore()
      const { body: { length: some } } = await ada.get(`${path}?limit=100`)
      await Promise.all(Array.from({ length: limit - some - 1 }, async () => await ada.post(path, body)))
      const answers = await meet(keysOf(ada.account!), () => [ada, ada, there, there].map(async (client) =>
        await client.post(path, body)))
      t.same(answers.map(({ status }) => status).sort(), [201, 409, 409, 409])
      t.equal((await ada.get(`${path}?limit=100`)).body.length, limit)
    })
  }
})
