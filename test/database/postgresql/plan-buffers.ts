import pg from 'pg'
import type { Test } from 'tap'
import { startApp, type Client, type TestApp } from '../../support/app.ts'
import { freshDatabase } from '../../support/database.ts'
import { collectStatements, connectUnreported, reportStatements } from '../../support/explained-statements.ts'
import { createOwner, hotPaths, type Actions, type Owner } from '../hot-paths.ts'
import { fillErasedAccounts, fillStore } from './skewed-store.ts'

// Plans must not depend on statistics, because a table can grow faster than PostgreSQL analyzes it. A plan that reads
// only what it returns reads few pages of the database, whatever its shape. PostgreSQL itself reports them: the service
// runs as it does in production, with its own prepared statements, and no table is ever analyzed by itself.

/**
 * 8 KB pages that a statement may read for each row that it returns: a page of 20 records, each looked up in a table or
 * two, and the walk.
 */
const PAGES_PER_ROW = 200

/** The same for a statement that writes. */
const PAGES_OF_WRITE = 180

/** And for each row that it changes: most are in five indexes, and refer to two other rows. */
const PAGES_PER_CHANGE = 30

/**
 * Further pages of some actions. The last step of an erasure checks that no table has rows of the account. It walks
 * over the index entries of the deleted ones, 600 in each table, while another statement may still see these. The poll
 * of the lab returns the states of all accounts that have one in a single row.
 */
const MORE_PAGES: Record<string, number> = { 'erase an account': 600, 'poll the lab': 100 }

/** Tests the plans of the hot statements on the server of the suite, or on the one that TEST_POSTGRES_URL names. */
export async function testPlans (t: Test): Promise<void> {
  const collect = collectStatements(t)

  await t.test('when its tables were never analyzed', async (t) => {
    const store = await openStore(t)
    const { service, owner, client } = store
    await fillStore(client, owner, [0, 0.01])
    const erased = await fillErasedAccounts(client, 3)
    await collect(async () => { await runAll(await actionsOf(store, erased.pop()!)) })
    const before = await connectionsOf(store)
    await besideWrites(store, async () => {
      await fillStore(client, owner, [0.01, 1])
      await t.test('and its plan was made when they were small', async (t) => {
        await assertPages(t, await actionsOf(store, erased.pop()!))
        t.same(await connectionsOf(store), before, 'the connections kept their plans')
      })
    })
    await t.test('and its plan is new', async (t) => {
      const again = { ...store, ...await restart(t, service, store.ada) }
      await assertPages(t, await actionsOf(again, erased.pop()!))
    })
  })

  await t.test('when its tables were analyzed', async (t) => {
    const store = await openStore(t)
    const { service, owner, client } = store
    await fillStore(client, owner, [0, 0.01])
    const erased = await fillErasedAccounts(client, 4)
    await client.query('ANALYZE')
    await collect(async () => { await runAll(await actionsOf(store, erased.pop()!)) })
    await besideWrites(store, async () => {
      await fillStore(client, owner, [0.01, 1])
      await t.test('and its plan was made when they were small', async (t) => {
        await assertPages(t, await actionsOf(store, erased.pop()!))
      })
    })
    await t.test('when they were small, and its plan is new', async (t) => {
      const again = { ...store, ...await restart(t, service, store.ada) }
      await assertPages(t, await actionsOf(again, erased.pop()!))
    })
    await client.query('ANALYZE')
    await t.test('lately', async (t) => {
      await assertPages(t, await actionsOf(store, erased.pop()!))
    })
  })

  async function assertPages (t: Test, actions: Actions): Promise<void> {
    const wasteful: string[] = []
    for (const [name, action] of Object.entries(actions)) {
      const statements = await collect(action)
      if (statements.length === 0) wasteful.push(`${name}: no statement was reported`)
      for (const { sql, pages, rows, changes } of statements) {
        const limit = changes === 0 ? PAGES_PER_ROW * Math.max(1, rows) : PAGES_OF_WRITE + PAGES_PER_CHANGE * changes
        if (pages <= limit + (MORE_PAGES[name] ?? 0)) continue
        wasteful.push(`${name}: ${pages} pages for ${rows} rows and ${changes} changes: ${sql.replace(/\s+/g, ' ').trim()}`)
      }
    }
    t.same(wasteful, [])
  }
}

interface Store { service: TestApp, ada: Client, owner: Owner, client: pg.Client }

/** Starts a service with one connection for reads and one for writes. */
async function openStore (t: Test): Promise<Store> {
  const url = await freshDatabase(t)
  await reportStatements(url)
  const service = await startApp(t, { DATABASE_URL: url, DATABASE_POOL: '2' })
  const ada = await service.openAccount()
  const owner = await createOwner(ada, await service.openAccount())
  const client = await connectUnreported(t, url)
  const { rows } = await client.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")
  for (const { name } of rows) await client.query(`ALTER TABLE ${name} SET (autovacuum_enabled = false)`)
  return { service, ada, owner, client }
}

/** Lets the service write meanwhile: it closes a connection that was idle for 10 s, and the plans go with it. */
async function besideWrites ({ ada }: Store, work: () => Promise<void>): Promise<void> {
  const writes = setInterval(() => { void ada.post('/messages', { message: 'Hi' }) }, 2_000)
  try {
    await work()
  } finally {
    clearInterval(writes)
  }
}

/** Starts another service on the same database, whose connections have no plans yet. */
async function restart (
  t: Test, { config: { DATABASE_URL } }: TestApp, { key, account }: Client
): Promise<Pick<Store, 'service' | 'ada'>> {
  const service = await startApp(t, { DATABASE_URL, DATABASE_POOL: '2' })
  return { service, ada: service.withKey(key!, account) }
}

async function actionsOf ({ service, ada, owner }: Store, erased: number): Promise<Actions> {
  return await hotPaths(service, ada, owner, erased)
}

async function runAll (actions: Actions): Promise<void> {
  for (const action of Object.values(actions)) await action()
}

/** Returns when each of the service's connections was made. */
async function connectionsOf ({ client }: Store): Promise<unknown[]> {
  const { rows } = await client.query(`
    SELECT pid, backend_start FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'petstore' ORDER BY pid`)
  return rows
}
