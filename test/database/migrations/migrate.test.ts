import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { pendingMigrations } from '../../../src/database/migrations/history.ts'
import { migrate } from '../../../src/database/migrations/migrate.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import { fileOf } from '../../../src/database/sqlite/database-file.ts'
import type { Prisma } from '../../../src/generated/sqlite/client.ts'
import { explainFailure } from '../../../src/start/explain-failure.ts'
import { build, CLI } from '../../support/cli.ts'
import { database, emptyDatabase, freshDatabase } from '../../support/database.ts'

t.before(build)

const TABLES = database === 'sqlite'
  ? "SELECT name FROM sqlite_master WHERE type IN ('table', 'index') AND name NOT LIKE 'sqlite_%' ORDER BY name"
  : "SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY relname"

/** Runs `use` in a transaction, which commits when it ends. */
async function within<T> (url: string, use: (prisma: Prisma.TransactionClient) => Promise<T>): Promise<T> {
  const { prisma, close } = await openDatabase({ url, pool: 2, timeout: 60_000 })
  try {
    return await prisma.$transaction(use)
  } finally {
    await close()
  }
}

async function namesIn (url: string): Promise<string[]> {
  const rows = await within(url, async (prisma) => await prisma.$queryRawUnsafe<Array<{ name: string }>>(TABLES))
  return rows.map(({ name }) => name)
}

/** Returns a function that says whether a migration of an empty database has written something. */
async function watch (t: Test, url: string): Promise<() => Promise<boolean>> {
  if (database === 'sqlite') return async () => existsSync(fileOf(url))
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.teardown(async () => { await client.end() })
  return async () => (await client.query(TABLES)).rows.length > 0
}

function startMigrating (url: string) {
  return spawn(process.execPath, [CLI, 'migrate'], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: ['ignore', 'ignore', 'pipe']
  })
}

/** A migration that is not the last one, and the first and last index that it creates. */
const MIGRATION = '20261124150809_account_deletion'
const [FIRST_INDEX, LAST_INDEX] = ['accounts_deleted_idx', 'deliveries_account_id_id_idx']

/** Creates a database whose `MIGRATION` started and changed nothing, as after a kill. @returns its URL */
async function halfWay (t: Test): Promise<string> {
  const url = await freshDatabase(t)
  await within(url, async (prisma) => {
    await prisma.$executeRaw`UPDATE _prisma_migrations SET finished_at = NULL WHERE migration_name = ${MIGRATION}`
    for (const index of [FIRST_INDEX, LAST_INDEX]) await prisma.$executeRawUnsafe(`DROP INDEX ${index}`)
    await prisma.$executeRawUnsafe('CREATE INDEX deliveries_account_id_idx ON deliveries(account_id)')
    await prisma.$executeRawUnsafe('ALTER TABLE accounts DROP COLUMN deleted_at')
  })
  return url
}

t.test('a migration that a killed process started is started again', async (t) => {
  const url = await halfWay(t)
  t.same(await pendingMigrations(url), [MIGRATION])
  t.same(await migrate(url), [MIGRATION])
  t.same(await namesIn(url), await namesIn(await freshDatabase(t)))
})

t.test('a migration that fails changes nothing, and succeeds when its obstacle is removed', async (t) => {
  const url = await halfWay(t)
  await within(url, async (prisma) => { await prisma.$executeRawUnsafe(`CREATE INDEX ${LAST_INDEX} ON pets(name)`) })
  for (let i = 0; i < 2; i++) {
    const error = await migrate(url).then(() => undefined, (error: unknown) => error)
    t.match(explainFailure(error), /^Unexpected error: .*deliveries_account_id_id_idx.* already exists/)
    t.notOk((await namesIn(url)).includes(FIRST_INDEX), 'nothing of what came before it')
  }
  await within(url, async (prisma) => { await prisma.$executeRawUnsafe(`DROP INDEX ${LAST_INDEX}`) })
  t.same(await migrate(url), [MIGRATION])
  t.same(await namesIn(url), await namesIn(await freshDatabase(t)))
})

t.test(
  'the file of a new database has everything, without its write-ahead log',
  { skip: database !== 'sqlite' && 'SQLite has files' },
  async (t) => {
    const [url, copy] = [await emptyDatabase(t), await emptyDatabase(t)]
    await migrate(url)
    copyFileSync(fileOf(url), fileOf(copy))
    t.same(await pendingMigrations(copy), [])
  }
)

t.test('a process that is killed during a migration does not block the next one', { timeout: 600_000 }, async (t) => {
  const expected = await namesIn(await freshDatabase(t))
  for (const pause of [0, 5, 10, 20, 30, 45, 60, 80]) {
    const url = await emptyDatabase(t)
    const hasBegun = await watch(t, url)
    const migrating = startMigrating(url)
    const exit = once(migrating, 'exit')
    // The kill comes after its first write. Before it, there is nothing to interrupt.
    while (migrating.exitCode === null && !(await hasBegun())) await sleep(1)
    await sleep(pause)
    migrating.kill('SIGKILL')
    await exit
    await migrate(url)
    t.same(await namesIn(url), expected, `killed after ${pause} ms`)
  }
})

t.test(
  'of several simultaneous processes one migrates, and the others find nothing to do',
  { timeout: 300_000 },
  async (t) => {
    const url = await emptyDatabase(t)
    const exits = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const process = startMigrating(url)
        let said = ''
        process.stderr.setEncoding('utf8').on('data', (text: string) => {
          said += text
        })
        const [code] = await once(process, 'close')
        return `${code} ${said}`
      })
    )
    t.same(
      exits.map((exit) => exit.slice(0, 1)),
      ['0', '0', '0', '0'],
      exits.join('\n')
    )
    t.same(await pendingMigrations(url), [])
  }
)
