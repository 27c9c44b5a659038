// Only on PostgreSQL: SQLite has no connections.

import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import type { Test } from 'tap'
import { startApp, type Answer, type Client } from '../../support/app.ts'
import { assertError } from '../../support/checks.ts'
import { database, freshDatabase, postgresServer } from '../../support/database.ts'
import { stocked } from '../../support/fixtures.ts'
import { eventually } from '../../support/receiver.ts'

const skip = database === 'sqlite' && 'SQLite has no connections'

/** Waiting for a connection must end long before. */
const REQUEST_TIMEOUT_MS = 60_000

const TOO_MANY_CONNECTIONS = '53300'

/** Lists with other filters are other statements, which run at the same time. */
const PATHS = [
  '/pets', '/pets?status=sold', '/pets?sort=-id', '/categories', '/store/orders', '/store/orders?complete=true',
  '/inventory', '/account', '/webhooks', '/messages', '/events', '/account/keys'
]

interface Limited {
  /** The URL of the database for a role that may have only some connections. */
  url: string
  setLimit: (connections: number) => Promise<void>
  /** Returns the number of the role's connections. */
  connections: () => Promise<number>
}

async function limitedRole (t: Test): Promise<Limited> {
  const role = `limited_${randomBytes(6).toString('hex')}`
  const admin = new pg.Client({ connectionString: await postgresServer() })
  await admin.connect()
  await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`)
  t.teardown(async () => {
    await admin.query(`DROP ROLE ${role}`)
    await admin.end()
  })
  const url = new URL(await freshDatabase(t))
  const owner = new pg.Client({ connectionString: url.href })
  await owner.connect()
  await owner.query(`
    GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO ${role}`)
  await owner.end()
  url.username = role
  url.password = 'secret'
  return {
    url: url.href,
    async setLimit (connections) { await admin.query(`ALTER ROLE ${role} CONNECTION LIMIT ${connections}`) },
    async connections () {
      const { rows: [row] } = await admin.query(
        'SELECT count(*)::int AS count FROM pg_stat_activity WHERE usename = $1', [role])
      return row.count
    }
  }
}

interface Repeated { count: number, failed: string[], slowest: number }

/** Sends one request after the other until `isOver`. @returns their failures, and the time of the slowest in ms */
async function repeat (isOver: () => boolean, send: () => Promise<Answer>): Promise<Repeated> {
  const result: Repeated = { count: 0, failed: [], slowest: 0 }
  do {
    const began = performance.now()
    const { status, text } = await send()
    result.slowest = Math.max(result.slowest, performance.now() - began)
    result.count++
    if (status >= 300) result.failed.push(`${status} ${text}`)
  } while (!isOver())
  return result
}

/** Reads and writes at the same time for a while, until `isEnough`, and asserts that every request succeeds. */
async function assertServed (t: Test, ada: Client, petId: number, isEnough = (): boolean => true): Promise<void> {
  const end = Date.now() + 1_000
  const isOver = (): boolean => Date.now() > end && isEnough()
  const [reads, writes] = await Promise.all([
    Promise.all([...PATHS, ...PATHS].map(async (path) => await repeat(isOver, async () => await ada.get(path)))),
    Promise.all([
      repeat(isOver, async () => await ada.post('/store/orders', { petId })),
      repeat(isOver, async () => await ada.post('/messages', { message: 'Hi' }, { 'idempotency-key': randomUUID() }))
    ])
  ])
  for (const [name, results] of Object.entries({ reads, writes })) {
    const slowest = Math.max(...results.map(({ slowest }) => slowest))
    const count = results.reduce((sum, { count }) => sum + count, 0)
    t.comment(`${count} ${name}, the slowest in ${slowest.toFixed(0)} ms`)
    t.same(results.flatMap(({ failed }) => failed), [], name)
    t.ok(count >= results.length, `${name} are answered`)
  }
}

t.test('a service with few connections', { skip }, async (t) => {
  const { url, setLimit, connections } = await limitedRole(t)
  const settings = { DATABASE_URL: url, DATABASE_POOL: '10', REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS) }
  const { openAccount } = await startApp(t, settings)
  const ada = await openAccount()
  const petId = await stocked(ada, 1_000_000_000)

  for (const limit of [4, 3, 2, 1]) {
    await t.test(`serves reads and writes by ${limit}`, async (t) => {
      await setLimit(limit)
      await closeSome(limit)
      await assertServed(t, ada, petId)
      t.ok(await connections() <= limit)
    })
  }

  await t.test('takes writes when reads have all connections', async (t) => {
    await setLimit(3)
    await closeSome(0)
    let isOver = false
    const reads = PATHS.map(async (path) => await repeat(() => isOver, async () => await ada.get(path)))
    await eventually(async () => await connections() === 3)
    const greet = async (): Promise<Answer> => await ada.post('/messages', { message: 'Hi' })
    const writes = await Promise.all(Array.from({ length: 5 }, greet))
    t.same(writes.map(({ status }) => status), Array(5).fill(201))
    isOver = true
    t.same((await Promise.all(reads)).flatMap(({ failed }) => failed), [])
  })

  await t.test('shares them with a client that takes and frees some', async (t) => {
    await setLimit(4)
    const over = new AbortController()
    const refusals: unknown[] = []
    const others = [1, 2, 3].map(async () => {
      while (!over.signal.aborted) {
        const client = new pg.Client({ connectionString: url })
        client.on('error', () => {})
        await client.connect().then(
          async () => { await sleep(randomInt(20, 200)) },
          (error: { code?: string }) => { refusals.push(error.code) })
        await client.end()
        await sleep(randomInt(20))
      }
    })
    // There are too few for all.
    const latest = Date.now() + 60_000
    await assertServed(t, ada, petId, () => refusals.length > 2 || Date.now() > latest)
    over.abort()
    await Promise.all(others)
    t.same(new Set(refusals), new Set([TOO_MANY_CONNECTIONS]))
  })

  await t.test('waits while another client has all of them', async (t) => {
    await setLimit(10)
    await closeSome(0)
    const others = [new pg.Client({ connectionString: url }), new pg.Client({ connectionString: url })]
    for (const other of others) await other.connect()
    await setLimit(2)
    await closeSome(0)
    const sent = Promise.all([ada.get('/pets'), ada.post('/messages', { message: 'Hi' })])
    await sleep(500)
    for (const other of others) await other.end()
    t.same((await sent).map(({ status }) => status), [200, 201])
  })

  await t.test('answers 503 while the server refuses all', async (t) => {
    const { username: role, pathname } = new URL(url)
    const name = pathname.slice(1)
    const admin = new pg.Client({ connectionString: await postgresServer() })
    await admin.connect()
    for (const [refuse, allow] of [
      [`ALTER ROLE ${role} NOLOGIN`, `ALTER ROLE ${role} LOGIN`],
      [`ALTER ROLE ${role} PASSWORD 'other'`, `ALTER ROLE ${role} PASSWORD 'secret'`],
      [`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`, `ALTER DATABASE ${name} ALLOW_CONNECTIONS true`],
      [`REVOKE CONNECT ON DATABASE ${name} FROM PUBLIC`, `GRANT CONNECT ON DATABASE ${name} TO PUBLIC`]
    ] as const) {
      await admin.query(refuse)
      await closeSome(0)
      assertError(t, await ada.get('/pets'), 503, 'database_unavailable', undefined, refuse)
      assertError(t, await ada.post('/messages', { message: 'Hi' }), 503, 'database_unavailable', undefined, refuse)
      await admin.query(allow)
      t.equal((await ada.post('/messages', { message: 'Hi' })).status, 201, allow)
    }
    await admin.end()
  })

  /** Ends all but some of the service's connections: it opens new ones when it needs them. */
  async function closeSome (kept: number): Promise<void> {
    const admin = new pg.Client({ connectionString: await postgresServer() })
    await admin.connect()
    const { username } = new URL(url)
    const ofService = "FROM pg_stat_activity WHERE usename = $1 AND application_name LIKE 'petstore%'"
    await admin.query(`SELECT pg_terminate_backend(pid) ${ofService} OFFSET $2`, [username, kept])
    await eventually(async () => (await admin.query(`SELECT 1 ${ofService}`, [username])).rows.length <= kept)
    await admin.end()
    // The service has to notice it before it uses one of them.
    await sleep(200)
  }
})
