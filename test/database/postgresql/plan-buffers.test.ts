import pg from 'pg'
import t from 'tap'
import type { Test } from 'tap'
import type { Transaction } from '../../../src/database/group-commit/transaction.ts'
import { PLANNER } from '../../../src/database/postgresql/connection-pool.ts'
import { postgresql } from '../../../src/database/postgresql/dialect.ts'
import { singleStatement } from '../../../src/database/reads/query-texts.ts'
import type { Query, Read } from '../../../src/database/reads/query.ts'
import { pageQuery, type ListDefinition } from '../../../src/database/sql/keyset-pagination.ts'
import { findInventoryItem, inventoryList } from '../../../src/inventory/queries.ts'
import { findOrder, orderList } from '../../../src/orders/queries.ts'
import { findPet, petList } from '../../../src/pets/queries.ts'
import { loadTrackedPets } from '../../../src/pets/tracked-pets.ts'
import { database, freshDatabase } from '../../support/database.ts'

// Plans must not depend on statistics, because a table can grow faster than PostgreSQL analyzes it. A plan that reads
// only what it returns reads few pages of the database, whatever its shape.

const SMALL_ACCOUNTS = 500

/** The account whose pets are far more than those of the others. */
const LARGE = SMALL_ACCOUNTS + 1
const LARGE_PETS = 40_000

/** Most pets of the large account are in one category, and this is another. */
const RARE_CATEGORY = LARGE + 1

/** 8 KB pages that the page of a list may take: 20 records, each looked up in a table or two, and the walk. */
const MAX_PAGES = 200

const MAX_PAGES_OF_RECORD = 20

t.test('no statement reads more than it returns', {
  skip: database === 'sqlite' && 'EXPLAIN of SQLite counts no pages'
}, async (t) => {
  await t.test('on tables that were never analyzed', async (t) => {
    const client = await open(t)
    await fill(client, 1)
    await assertPages(t, client)
  })

  await t.test('on tables that grew since', async (t) => {
    const client = await open(t)
    await fill(client, 0.01)
    await client.query('ANALYZE')
    await fill(client, 1)
    await assertPages(t, client)
    await client.query('ANALYZE')
    await t.test('and were analyzed again', async (t) => { await assertPages(t, client) })
  })
})

async function open (t: Test): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: await freshDatabase(t), options: PLANNER.map((setting) => `-c ${setting}`).join(' ')
  })
  await client.connect()
  t.teardown(async () => { await client.end() })
  for (const table of ['accounts', 'categories', 'pets', 'orders', 'inventory_items']) {
    await client.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`)
  }
  return client
}

async function fill (client: pg.Client, scale: number): Promise<void> {
  const smallAccounts = SMALL_ACCOUNTS * scale
  const largePets = LARGE_PETS * scale
  await client.query(`
    INSERT INTO accounts (id, name, created_at) SELECT i, 'a', now() FROM generate_series(1, ${LARGE}) i
    ON CONFLICT DO NOTHING`)
  await client.query(`
    INSERT INTO categories (id, account_id, name)
    SELECT i, least(i, ${LARGE}), 'c' FROM generate_series(1, ${RARE_CATEGORY}) i
    ON CONFLICT DO NOTHING`)
  await client.query(`
    INSERT INTO pets (account_id, category_id, name, status)
    SELECT i, i, 'p', (ARRAY['available', 'pending', 'sold'])[1 + n % 3]::pet_status
    FROM generate_series(1, ${smallAccounts}) i, generate_series(1, 20) n`)
  await client.query(`
    INSERT INTO pets (account_id, category_id, name, status)
    SELECT ${LARGE}, CASE WHEN n % 1000 = 1 THEN ${RARE_CATEGORY} ELSE ${LARGE} END, 'p',
      (CASE WHEN n % 800 = 7 THEN 'available' WHEN n % 4000 = 9 THEN 'pending' ELSE 'sold' END)::pet_status
    FROM generate_series(1, ${largePets}) n`)
  await client.query(`
    INSERT INTO inventory_items (pet_id, account_id, quantity)
    SELECT id, account_id, 5 FROM pets WHERE id % CASE WHEN account_id = ${LARGE} THEN 100 ELSE 2 END = 1
    ON CONFLICT DO NOTHING`)
  await client.query(`
    INSERT INTO orders (account_id, pet_id, quantity, complete) SELECT account_id, id, 1, id % 800 <> 7 FROM pets`)
  await client.query(`
    INSERT INTO orders (account_id, pet_id, quantity, complete)
    SELECT ${LARGE}, (SELECT min(id) FROM pets WHERE account_id = ${LARGE}), 1, n % 800 <> 7
    FROM generate_series(1, ${10_000 * scale}) n`)
}

/** Asserts how many pages the lists of the large account, and single records of it, take. */
async function assertPages (t: Test, client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ id: string }>(`
    (SELECT id FROM pets WHERE account_id = ${LARGE} ORDER BY id LIMIT 1)
    UNION ALL (SELECT id FROM pets WHERE account_id = ${LARGE} ORDER BY id DESC LIMIT 20)`)
  const [first, ...ids] = rows.map(({ id }) => Number(id)) as [number, ...number[]]
  const samples: Record<string, unknown[]> = {
    status: ['available', 'sold'], categoryId: [LARGE, RARE_CATEGORY], complete: [false, true], id: [ids]
  }
  const lists: Array<[ListDefinition, Record<string, unknown[]>]> = [
    [petList, samples], [orderList, { ...samples, petId: [first] }], [inventoryList, { ...samples, petId: [ids] }]
  ]
  const wasteful: string[] = []
  for (const [list, values] of lists) {
    for (const filters of combinations(Object.keys(list.filters), values)) {
      for (const descending of [false, true]) {
        for (const after of [undefined, first + LARGE_PETS / 2]) {
          const pages = await pagesOf(client, ...pageQuery(list, { limit: 20, descending, after, filters }, LARGE))
          const name = `${list.name} ${JSON.stringify(filters)} ${descending ? 'downwards' : 'upwards'} after ${after}`
          if (pages > MAX_PAGES) wasteful.push(`${name}: ${pages} pages`)
        }
      }
    }
  }
  t.same(wasteful, [])

  const read = (async (query: Query<object, unknown>, input: object) => {
    t.ok(await pagesOf(client, query, input) <= MAX_PAGES_OF_RECORD, query.sql(postgresql))
  }) as Read
  await findPet(read, LARGE, first)
  await findOrder(read, LARGE, first)
  await findInventoryItem(read, LARGE, first)

  const query: Transaction['query'] = async (sql, inputs) => {
    t.ok(await pagesOfStatement(client, `(text) AS ${sql}`, [JSON.stringify(inputs)]) <= MAX_PAGES, sql)
    return []
  }
  // The first pet has thousands of shipped orders, and few open ones.
  await loadTrackedPets({ dialect: postgresql, query } as Transaction, [{ account: LARGE, id: first }], true)
}

/** Returns all combinations of filters, each with all its values. */
function combinations (names: string[], values: Record<string, unknown[]>): Array<Record<string, unknown>> {
  return names.reduce<Array<Record<string, unknown>>>((all, name) =>
    [...all, ...all.flatMap((filters) => values[name]!.map((value) => ({ ...filters, [name]: value })))], [{}])
}

/**
 * Runs a query as the service does, with generic plans: as a statement for several inputs, and for one.
 *
 * @returns how many pages the worse of the two takes
 */
async function pagesOf (client: pg.Client, query: Query<object, unknown>, input: object): Promise<number> {
  const { sql, valuesOf } = singleStatement(query, postgresql)
  return Math.max(
    await pagesOfStatement(client, `(text) AS ${query.sql(postgresql)}`, [JSON.stringify([{ ord: 1, ...input }])]),
    await pagesOfStatement(client, ` AS ${sql}`, valuesOf(input)))
}

async function pagesOfStatement (client: pg.Client, statement: string, values: unknown[]): Promise<number> {
  await client.query(`PREPARE statement${statement}`)
  const { rows: [row] } = await client.query<Record<string, [{ Plan: Record<string, number> }]>>(
    `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE statement(${values.map((value) => `'${value}'`).join(', ')})`)
  await client.query('DEALLOCATE statement')
  const { Plan: plan } = row!['QUERY PLAN']![0]
  return plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
}
