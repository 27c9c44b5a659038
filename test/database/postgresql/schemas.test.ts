// Only on PostgreSQL: SQLite has no schemas.

import pg from 'pg'
import t, { type Test } from 'tap'
import { runChecks } from '../../../src/cli/doctor-checks.ts'
import { migrate } from '../../../src/database/migrations/migrate.ts'
import { verifyMigrations } from '../../../src/database/migrations/startup-check.ts'
import { startApp, type TestApp } from '../../support/app.ts'
import { assertError } from '../../support/checks.ts'
import { database, emptyDatabase } from '../../support/database.ts'
import { createRecords, loadFixtures, mergeTables } from '../../support/fixture.ts'

const skip = database === 'sqlite' && 'SQLite has no schemas'

const fixtures = await loadFixtures()
const CHANGES = mergeTables(fixtures.map(({ changes }) => changes))
const SECRET_WRITES = mergeTables(fixtures.map(({ secretWrites }) => secretWrites))

t.test('two stores in two schemas of a database', { skip }, async (t) => {
  const url = await emptyDatabase(t)
  const admin = await connect(t, url)
  await migrate(url)
  await migrate(`${url}?schema=three`)
  const stores = {
    public: await startApp(t, { DATABASE_URL: url }), three: await startApp(t, { DATABASE_URL: `${url}?schema=three` })
  }
  for (const { openAccount } of Object.values(stores)) await createRecords(await openAccount(), fixtures)

  for (const [own, other] of [['three', 'public'], ['public', 'three']] as const) {
    await t.test(`no operation in ${own} touches ${other}`, async (t) => {
      const before = await rowsOf(admin, other)
      await useEverything(t, stores[own])
      t.equal(await rowsOf(admin, other), before)
    })
  }

  await t.test('the key of one is none in the other', async (t) => {
    const ada = await stores.three.openAccount()
    const { body: { apiKey } } = await ada.post('/account/keys', {})
    for (const key of [ada.key!, apiKey]) {
      assertError(t, await stores.public.withKey(key).get('/account'), 401, 'unauthorized')
      t.equal((await stores.three.withKey(key).get('/account')).status, 200)
    }
  })

  await t.test('the schema of the URL counts, whatever search_path the URL or the role has', async (t) => {
    const { openAccount } = await startApp(t, { DATABASE_URL: `${url}?schema=three&options=-csearch_path%3Dpublic` })
    const before = await rowsOf(admin, 'public')
    await createRecords(await openAccount(), fixtures)
    t.equal(await rowsOf(admin, 'public'), before)
  })

  await t.test('a search_path without the schema in the URL is refused', async (t) => {
    const says = /^A search_path selects the schema three, and DATABASE_URL names none: add .* schema=three .*\.$/
    const selecting = `${url}?options=-csearch_path%3Dthree`
    await t.rejects(verifyMigrations(selecting), { message: says })
    await t.rejects(migrate(selecting), { message: says })
    t.match(await lastCheck(selecting), { subject: 'database', failed: true, text: says })
    const { nobody } = await startApp(t, { DATABASE_URL: selecting })
    assertError(t, await nobody.post('/accounts', { name: 'A store' }), 503, 'database_unavailable')
  })
})

t.test('a schema that is missing', { skip }, async (t) => {
  const url = await emptyDatabase(t)
  const admin = await connect(t, url)
  // A name that needs quotes, and one as long as PostgreSQL allows.
  for (const schema of ['My "pets"', 'ü'.repeat(31)]) {
    const ours = `${url}?schema=${encodeURIComponent(schema)}`
    t.match(await lastCheck(ours), { subject: 'migrations', failed: true, text: 'petstore migrate' })
    await t.rejects(verifyMigrations(ours), { message: 'npx --no petstore migrate' })
    t.ok((await migrate(ours)).length > 5, 'is created by the migration')
    t.same(await migrate(ours), [])
    t.match(await lastCheck(ours), { subject: 'writing', text: 'the database is writable' })

    const { openAccount, nobody } = await startApp(t, { DATABASE_URL: ours })
    await createRecords(await openAccount(), fixtures)
    await admin.query(`DROP SCHEMA ${pg.escapeIdentifier(schema)} CASCADE`)
    await admin.query(`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`)
    assertError(t, await nobody.post('/accounts', { name: 'A store' }), 503, 'database_unavailable')
  }
  t.same(await rowsOf(admin, 'public'), '[]', 'and nothing is in another')
})

/** Creates and changes a record of each kind. */
async function useEverything (t: Test, { openAccount }: TestApp): Promise<void> {
  await createRecords(await openAccount(), fixtures)
  for (const [operationId, prepare] of Object.entries(CHANGES)) {
    const ada = await openAccount()
    const { method, path, bodies: [body] } = await prepare(ada)
    const answer = await ada.request(method, path, { body })
    t.ok(answer.status < 300, `${operationId}: ${answer.text}`)
  }
  for (const [operationId, prepare] of Object.entries(SECRET_WRITES)) {
    const ada = await openAccount()
    const [method, path, body] = await prepare(ada)
    const answer = await ada.request(method, path, { body })
    t.ok(answer.status < 300, `${operationId}: ${answer.text}`)
  }
}

/** Returns all rows of a schema as a text, by table, without those of deleted accounts: its service erases them. */
async function rowsOf (admin: pg.Client, schema: string): Promise<string> {
  const { rows: tables } = await admin.query<{ name: string }>(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1 ORDER BY 1', [schema])
  const rows: Record<string, Array<Record<string, unknown>>> = {}
  for (const { name } of tables) {
    const table = `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`
    rows[name] = (await admin.query(`SELECT * FROM ${table} AS row ORDER BY row::text`)).rows
  }
  const deleted = new Set((rows['accounts'] ?? []).filter((row) => row['deleted_at'] !== null).map(({ id }) => id))
  const isKept = (name: string, { id, account_id: account }: Record<string, unknown>): boolean =>
    !deleted.has(name === 'accounts' ? id : account)
  return JSON.stringify(Object.entries(rows).map(([name, all]) => [name, all.filter((row) => isKept(name, row))]))
}

async function connect (t: Test, url: string): Promise<pg.Client> {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  t.teardown(async () => { await admin.end() })
  return admin
}

/** Returns the last result of `doctor`: a failed check ends it. */
async function lastCheck (url: string): Promise<unknown> {
  let last: unknown
  for await (const result of runChecks({ DATABASE_URL: url })) last = result
  return last
}
