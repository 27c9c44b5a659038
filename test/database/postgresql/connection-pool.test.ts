import pg from 'pg'
import t from 'tap'
import { classifyError } from '../../../src/database/error-classification.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import { startApp } from '../../support/app.ts'
import { database as databaseName, freshDatabase } from '../../support/database.ts'
import { newPet } from '../../support/fixtures.ts'
import { tamperingNetwork } from '../../support/tampering.ts'

const skip = databaseName === 'sqlite' && 'SQLite has no pool'

t.test('a busy service opens at most DATABASE_POOL connections, and uses them', { skip }, async (t) => {
  // How many of the larger pool are open at once depends on the machine. The default is 10.
  for (const [pool, least] of [[2, 2], [14, 4]] as const) {
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
    t.ok(count >= least && count <= pool, `${count} of ${pool} connections`)
  }
})

t.test('a connection that is lost during a read fails the read, and not the process', { skip }, async (t) => {
  const network = await tamperingNetwork(t, await freshDatabase(t))
  const database = await openDatabase({ url: network.url, pool: 2, timeout: 5_000 })
  t.teardown(database.close)
  const read = async (): Promise<object[][]> =>
    await database.reads.runTogether!([{ sql: 'SELECT 1 AS one', values: [] }])
  t.same(await read(), [[{ one: 1 }]])
  network.tamper = () => 'drop'
  const error: unknown = await read().catch((error: unknown) => error)
  t.equal(classifyError(error), 'unavailable', String(error))
  network.tamper = (bytes) => bytes
  t.same(await read(), [[{ one: 1 }]])
})
