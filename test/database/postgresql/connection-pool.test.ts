// Only on PostgreSQL: SQLite has no pool.

import pg from 'pg'
import t from 'tap'
import { classifyError } from '../../../src/database/error-classification.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import { nameOf } from '../../../src/database/postgresql/statement-batch.ts'
import type { OwnStatement } from '../../../src/database/statements.ts'
import { startApp } from '../../support/app.ts'
import { database as databaseName, freshDatabase } from '../../support/database.ts'
import { newPet } from '../../support/fixtures.ts'
import { tamperingNetwork } from '../../support/tampering.ts'

const skip = databaseName === 'sqlite' && 'SQLite has no pool'

t.test('a busy service opens at most DATABASE_POOL connections, and uses them', { skip }, async (t) => {
  // How many of the larger pool are open at once depends on the machine. The default is 10.
  for (const pool of [2, 14]) {
    const { config, openAccount } = await startApp(t, { DATABASE_POOL: String(pool) })
    const ada = await openAccount()
    const petId = await newPet(ada)
    // Lists with other filters are other statements, which run at the same time.
    const paths = [
      '/pets', '/pets?status=sold', `/pets?id=${petId}`, '/pets?sort=-id', '/categories', '/store/orders',
      '/store/orders?complete=true', '/inventory', '/account', '/webhooks', '/messages', '/events', '/account/keys'
    ]
    const reads = Array.from({ length: 10 }, () => paths).flat().map(async (path) => (await ada.get(path)).status)
    const writes = Array.from({ length: 40 }, async () => (await ada.post('/messages', { message: 'Hi' })).status)
    t.same(new Set(await Promise.all(reads)), new Set([200]))
    t.same(new Set(await Promise.all(writes)), new Set([201]))
    const admin = new pg.Client({ connectionString: config.DATABASE_URL })
    await admin.connect()
    const { rows: [{ count }] } = await admin.query(`
      SELECT count(*)::int FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'petstore'`)
    await admin.end()
    t.ok(count >= 2 && count <= pool, `${count} of ${pool} connections`)
  }
})

t.test('a connection that is lost during a read fails the read, and not the process', { skip }, async (t) => {
  const network = await tamperingNetwork(t, await freshDatabase(t))
  const database = await openDatabase({ url: network.url, pool: 2, timeout: 60_000 })
  t.teardown(database.close)
  const read = async (): Promise<object[][]> =>
    await database.read([{ sql: 'SELECT 1 AS one', values: [] }])
  t.same(await read(), [[{ one: 1 }]])
  network.tamper = () => 'drop'
  const error: unknown = await read().catch((error: unknown) => error)
  t.equal(classifyError(error), 'unavailable', String(error))
  network.tamper = (bytes) => bytes
  t.same(await read(), [[{ one: 1 }]])
})

t.test('a connection that is lost during a message fails it, and no statement runs again', { skip }, async (t) => {
  const network = await tamperingNetwork(t, await freshDatabase(t))
  const { read, close } = await openDatabase({ url: network.url, pool: 2, timeout: 60_000 })
  t.teardown(close)
  const statements = [1, 2, 3].map((n): OwnStatement => ({ sql: `SELECT ${n} AS n`, values: [] }))
  t.same(await read(statements), [[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]])
  let messages = 0
  network.tamper = (bytes) => {
    if (!bytes.includes(nameOf(statements[1]!.sql))) return bytes
    messages++
    return 'drop'
  }
  t.equal(await read(statements).catch(classifyError), 'unavailable')
  t.equal(messages, 1)
  network.tamper = (bytes) => bytes
  t.same(await read(statements), [[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]])
})

t.test('a read that no connection can run fails', { skip }, async (t) => {
  const { read, close } = await openDatabase({ url: await freshDatabase(t), pool: 2, timeout: 60_000 })
  t.teardown(close)
  // Not for its stale plan, which another connection would not have.
  const elsewhere: OwnStatement = { sql: 'SELECT 1 FROM elsewhere.public.pets', values: [] }
  await t.rejects(read([elsewhere]), { code: '0A000' })
  t.same(await read([{ sql: 'SELECT 1 AS one', values: [] }]), [[{ one: 1 }]])
})
