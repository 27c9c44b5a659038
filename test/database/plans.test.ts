import t from 'tap'
import { openDatabase } from '../../src/database/open-database.ts'
import { indexOf, pageQuery, type ListDefinition } from '../../src/database/sql/keyset-pagination.ts'
import { keyList } from '../../src/accounts/queries.ts'
import { categoryList } from '../../src/categories/queries.ts'
import { inventoryList } from '../../src/inventory/queries.ts'
import { messageList } from '../../src/messages/queries.ts'
import { orderList } from '../../src/orders/queries.ts'
import { petList } from '../../src/pets/queries.ts'
import { webhookList } from '../../src/webhooks/queries.ts'
import { database as databaseName, freshDatabase } from '../support/database.ts'

const ACCOUNTS = 3
const PETS = 3_000
const SAMPLES: Record<string, unknown> = { status: 'pending', categoryId: 7, id: [1, 2, 3], petId: 5, complete: true }

t.test('every list reads the index of its filters, in both orders', async (t) => {
  const database = await openDatabase({ url: await freshDatabase(t), pool: 2, timeout: 30_000 })
  t.teardown(database.close)
  await fill(async (sql) => { await database.writer.$executeRawUnsafe(sql) })

  for (const listing of [petList, categoryList, orderList, inventoryList, messageList, keyList, webhookList]) {
    for (const used of subsets(Object.keys(listing.filters))) {
      for (const descending of [false, true]) {
        const filters = Object.fromEntries(used.map((name) => [name, sampleOf(listing, name)]))
        const [query, input] = pageQuery(listing, { limit: 20, descending, after: undefined, filters }, 1)
        const sql = query.sql(database.dialect)
        const plan = await explain(sql, JSON.stringify([{ ord: 0, ...input }]))
        const name = `${listing.name} by ${used.join(' and ') || 'nothing'} ${descending ? 'downwards' : 'upwards'}`
        t.same(plan.filter((line) => FULL_SCAN.test(line)), [], `${name}: no table is walked whole`)
        if (used.some((name) => listing.filters[name]?.type === 'json')) continue
        const { name: index } = indexOf(listing, used)
        t.equal(plan.filter((line) => line.includes(index)).length, 2, `${name}: ${index} serves both the page and what is after it`)
      }
    }
  }

  async function explain (sql: string, input: string): Promise<string[]> {
    const explained = databaseName === 'sqlite' ? `EXPLAIN QUERY PLAN ${sql}` : `EXPLAIN ${sql}`
    const rows = await database.reader.$queryRawUnsafe<Array<Record<string, unknown>>>(explained, input)
    return rows.map((row) => String(row.detail ?? row['QUERY PLAN']))
  }
})

/** Finds a full scan of a table: SCAN on SQLite, Seq Scan on PostgreSQL. A scan of the statement's input is allowed. */
const FULL_SCAN = databaseName === 'sqlite' ? /^SCAN (?!jsonb?_each|i\b|x\b|y\b|CONSTANT|value\b)/ : /Seq Scan on/

function sampleOf (listing: ListDefinition, name: string): unknown {
  return listing.filters[name]?.type === 'json' ? [1, 2, 3] : SAMPLES[name]
}

function subsets (names: string[]): string[][] {
  return names.reduce<string[][]>((sets, name) => [...sets, ...sets.map((set) => [...set, name])], [[]])
}

/** Inserts enough rows for the planner to choose between plans, and collects statistics. */
async function fill (run: (sql: string) => Promise<void>): Promise<void> {
  const numbers = `(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${PETS}) SELECT i FROM n) AS n`
  const status = (text: string): string => databaseName === 'sqlite' ? text : `CAST(${text} AS pet_status)`
  const time = databaseName === 'sqlite' ? "'2026-11-21T10:00:00.000Z'" : "timestamp '2026-11-21 10:00:00'"
  await run(`INSERT INTO accounts (id, name, created_at) SELECT i, 'a', ${time} FROM ${numbers} WHERE i <= ${ACCOUNTS}`)
  await run(`INSERT INTO api_keys (id, account_id, prefix, hash, created_at) SELECT i, i % ${ACCOUNTS} + 1, 'p', 'hash' || i, ${time} FROM ${numbers}`)
  await run(`INSERT INTO categories (id, account_id, name) SELECT i, i % ${ACCOUNTS} + 1, 'c' FROM ${numbers}`)
  await run(`INSERT INTO pets (id, account_id, name, category_id, status)
    SELECT i, i % ${ACCOUNTS} + 1, 'p', i, ${status("CASE i % 3 WHEN 0 THEN 'available' WHEN 1 THEN 'pending' ELSE 'sold' END")} FROM ${numbers}`)
  await run(`INSERT INTO inventory_items (pet_id, account_id, quantity) SELECT i, i % ${ACCOUNTS} + 1, 1 FROM ${numbers}`)
  await run(`INSERT INTO orders (id, account_id, pet_id, quantity, complete) SELECT i, i % ${ACCOUNTS} + 1, i, 1, i % 2 = 0 FROM ${numbers}`)
  await run(`INSERT INTO messages (position, id, account_id, message, created_at) SELECT i, 'msg' || i, i % ${ACCOUNTS} + 1, 'm', ${time} FROM ${numbers}`)
  await run(`INSERT INTO webhooks (id, account_id, url, events, secret, created_at) SELECT i, i % ${ACCOUNTS} + 1, 'u', '[]', 's', ${time} FROM ${numbers}`)
  await run('ANALYZE')
}
