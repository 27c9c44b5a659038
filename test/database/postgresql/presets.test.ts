// Only on PostgreSQL: SQLite has no roles.

import pg from 'pg'
import t, { type Test } from 'tap'
import { runChecks } from '../../../src/cli/doctor-checks.ts'
import { openMigrationSession } from '../../../src/database/migrations/history.ts'
import { migrate } from '../../../src/database/migrations/migrate.ts'
import { migrateOrVerify } from '../../../src/database/migrations/startup-check.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import { startApp, type Client } from '../../support/app.ts'
import { assertError } from '../../support/checks.ts'
import { database, emptyDatabase, postgresServer } from '../../support/database.ts'
import { createRecords, loadFixtures, mergeTables } from '../../support/fixture.ts'
import { databaseUrl, onServer } from '../../support/test-databases.ts'

const skip = database === 'sqlite' && 'SQLite has no roles'

const fixtures = await loadFixtures()
const CHANGES = mergeTables(fixtures.map(({ changes }) => changes))

/** What an operator, or a provider, can preset for a role or a database. */
const PRESETS = [
  "DateStyle='German, DMY'", "TimeZone='Asia/Kathmandu'", 'IntervalStyle=iso_8601', 'extra_float_digits=-15',
  'bytea_output=escape', "lc_monetary='C.UTF-8'", "lc_numeric='C.UTF-8'", "lc_time='C.UTF-8'", "lc_messages='C.UTF-8'",
  'standard_conforming_strings=off', 'escape_string_warning=on', 'backslash_quote=off', 'array_nulls=off',
  'transform_null_equals=on', 'quote_all_identifiers=on', 'exit_on_error=on', 'xmlbinary=hex', 'xmloption=document',
  'client_encoding=LATIN1', 'search_path=nowhere', 'statement_timeout=60000', 'lock_timeout=1',
  "default_transaction_isolation='serializable'", 'default_transaction_deferrable=on', 'row_security=off',
  'enable_indexscan=off', 'enable_nestloop=off', 'enable_sort=off', 'plan_cache_mode=force_custom_plan',
  'synchronous_commit=off', 'check_function_bodies=off'
]

t.test('what a role presets changes no answer', { skip }, async (t) => {
  const server = await postgresServer()
  await onServer(server, "CREATE ROLE preset SUPERUSER LOGIN PASSWORD 'preset'")
  // After the database, in which the role owns the tables.
  t.teardown(async () => { await onServer(server, 'DROP ROLE preset') })
  const url = await emptyDatabase(t)
  await onServer(server, PRESETS.map((preset) => `ALTER ROLE preset SET ${preset}`).join(';'))
  const presetUrl = new URL(url)
  presetUrl.username = presetUrl.password = 'preset'
  t.ok((await migrate(presetUrl.href)).length > 5, 'migrations are applied')
  await migrateOrVerify({ DATABASE_URL: presetUrl.href, MIGRATE_ON_START: false })
  const migrating = await openMigrationSession(presetUrl.href)
  const limit = await migrating.rows("SELECT current_setting('statement_timeout') AS timeout")
  t.same(limit, [{ timeout: '0' }], 'a migration has no time limit')
  await migrating.close()

  const there = await startApp(t, { DATABASE_URL: presetUrl.href })
  const here = await startApp(t, { DATABASE_URL: url })
  const ada = await there.openAccount('Übergröße 🐈 \\ \'')
  const also = here.withKey(ada.key!, ada.account)
  const created = await createRecords(ada, fixtures)
  for (const [operationId, prepare] of Object.entries(CHANGES)) {
    const bob = await there.openAccount()
    const { method, path, bodies: [body] } = await prepare(bob)
    const answer = await bob.request(method, path, { body })
    t.ok(answer.status < 300, `${operationId}: ${answer.text}`)
  }

  const { body: { paths } } = await here.nobody.get('/openapi.json')
  for (const path of Object.keys(paths).filter((path) => 'get' in paths[path])) {
    const at = path.replace(/\{(\w+)\}/, (_, name: string) => String(created[name]))
    t.same(await shown(ada, at), await shown(also, at), at)
  }
  assertError(t, await ada.patch('/pets/9007199254740991', { name: 'Rex' }), 404, 'pet_not_found')

  const opened = await openDatabase({ url: presetUrl.href, pool: 2, timeout: 60_000 })
  t.teardown(opened.close)
  const { body: account } = await also.get('/account')
  for (const prisma of [opened.prisma, opened.prisma]) {
    const { name, createdAt } = await prisma.account.findUniqueOrThrow({ where: { id: ada.account! } })
    t.match(account, { name, createdAt: createdAt.toISOString() }, 'nor what Prisma Client reads')
  }
})

async function shown (client: Client, path: string): Promise<unknown> {
  const { status, text, headers: { etag, link } } = await client.get(path)
  return { status, text, etag, link }
}

t.test('a database that cannot store every text is refused in one sentence', { skip }, async (t) => {
  const server = await postgresServer()
  for (const encoding of ['LATIN1', 'SQL_ASCII']) {
    const url = await encodedDatabase(t, server, encoding)
    const says = new RegExp(`^The database in DATABASE_URL has the encoding ${encoding}, which .* UTF8\\.$`)
    for (const MIGRATE_ON_START of [true, false]) {
      await t.rejects(migrateOrVerify({ DATABASE_URL: url, MIGRATE_ON_START }), { message: says })
    }
    await t.rejects(migrate(url), { message: says })
    const results = []
    for await (const result of runChecks({ DATABASE_URL: url })) results.push(result)
    t.match(results.at(-1), { subject: 'database', failed: true, text: says })
  }
})

async function encodedDatabase (t: Test, server: string, encoding: string): Promise<string> {
  const name = `petstore_${encoding.toLowerCase()}`
  await onServer(server, `
    CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}' LOCALE_PROVIDER libc LOCALE 'C'`)
  t.teardown(async () => { await onServer(server, `DROP DATABASE ${pg.escapeIdentifier(name)} WITH (FORCE)`) })
  return databaseUrl(server, name)
}
