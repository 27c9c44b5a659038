import t from 'tap'
import type { Database } from '../../src/database/database.ts'
import { ACCOUNT_TABLES } from '../../src/database/account-tables.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { build } from '../support/cli.ts'
import { database as databaseName, freshDatabase } from '../support/database.ts'
import { eventually } from '../support/receiver.ts'
import { start } from './process.ts'

t.before(build)

/** Enough for a hundred steps with pauses between them, of which a kill meets one. */
const CATEGORIES = 50_000

/** Time for a search of deleted accounts to begin, and to erase all rows. Far longer than usual. */
const ERASURE_MS = 120_000

interface Account { id: number, apiKey: string }

async function openAccount (origin: string): Promise<Account> {
  const answer = await fetch(`${origin}/accounts`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"name": "A store"}'
  })
  return await answer.json() as Account
}

async function request (origin: string, { apiKey }: Account, method = 'GET', path = '/account'): Promise<number> {
  return (await fetch(origin + path, { method, headers: { authorization: `Bearer ${apiKey}` } })).status
}

/** Returns the number of rows that an account has in all tables, and 1 for its own. */
async function rowsOf (client: Database['prisma'], { id }: Account): Promise<number> {
  const counts = ACCOUNT_TABLES.map((table) => `(SELECT count(*) FROM ${table} WHERE account_id = ${id})`)
  const [row] = await client.$queryRawUnsafe<Array<{ rows: bigint }>>(
    `SELECT (SELECT count(*) FROM accounts WHERE id = ${id}) + ${counts.join(' + ')} AS rows`)
  return Number(row!.rows)
}

async function addCategories (client: Database['prisma'], { id }: Account, count: number): Promise<void> {
  const numbers = databaseName === 'sqlite'
    ? `(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT i FROM n)`
    : `generate_series(1, ${count})`
  await client.$executeRawUnsafe(`INSERT INTO categories (account_id, name) SELECT ${id}, 'Dogs' FROM ${numbers} AS n`)
}

t.test('a process that is killed while it erases an account leaves the rest to the next one', async (t) => {
  const url = await freshDatabase(t)
  const database = await openDatabase({ url, pool: 2, timeout: 60_000 })
  t.teardown(database.close)
  const { prisma } = database
  const settings = { DATABASE_URL: url, LOG_LEVEL: 'silent', DELIVERY: 'false' }
  const first = await start(t, settings)
  const [ada, bob] = [await openAccount(first.origin), await openAccount(first.origin)]
  await addCategories(prisma, ada, CATEGORIES)
  await addCategories(prisma, bob, 100)
  const [before, kept] = [await rowsOf(prisma, ada), await rowsOf(prisma, bob)]

  t.equal(await request(first.origin, ada, 'DELETE'), 204)
  // Rows are kept for some seconds after the deletion.
  await prisma.account.update({ where: { id: ada.id }, data: { deletedAt: new Date(Date.now() - 60_000) } })
  await eventually(async () => await rowsOf(prisma, ada) < before - 1_000, ERASURE_MS)
  const duringErasure = await request(first.origin, ada)
  t.equal(await first.stop('SIGKILL'), 'SIGKILL')
  const left = await rowsOf(prisma, ada)
  t.ok(left > 1_000 && left < before, `the process was killed when ${left} of ${before} rows were left`)
  t.equal(duringErasure, 401, 'the account was invisible meanwhile')

  const next = await start(t, settings)
  const statuses = new Set<number>()
  await eventually(async () => {
    for (const path of ['/account', '/categories']) statuses.add(await request(next.origin, ada, 'GET', path))
    statuses.add(await request(next.origin, ada, 'DELETE'))
    return await rowsOf(prisma, ada) === 0
  }, ERASURE_MS)
  t.same([...statuses], [401], 'the account is invisible from the start of the next process')
  t.equal(await rowsOf(prisma, bob), kept, 'the rows of another account stay')
  t.equal(await request(next.origin, bob), 200)
})
