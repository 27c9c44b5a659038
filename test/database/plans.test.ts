import t from 'tap'
import { openDatabase } from '../../src/database/open-database.ts'
import { indexOf, pageQuery } from '../../src/database/sql/keyset-pagination.ts'
import { database as databaseName, freshDatabase } from '../support/database.ts'
import { loadFixtures, type ListFixture } from '../support/fixture.ts'

const ACCOUNTS = 3
const PETS = 3_000

const lists = (await loadFixtures()).flatMap(({ list }) => list ?? [])

t.test('every list reads the index of its filters, in both orders', async (t) => {
  const database = await openDatabase({ url: await freshDatabase(t), pool: 2, timeout: 30_000 })
  t.teardown(database.close)
  await fill(async (sql) => { await database.writer.$executeRawUnsafe(sql) })

  for (const list of lists) {
    const { definition: listing } = list
    for (const used of subsets(Object.keys(listing.filters))) {
      for (const descending of [false, true]) {
        const filters = Object.fromEntries(used.map((name) => [name, sampleOf(list, name)]))
        const [query, input] = pageQuery(listing, { limit: 20, descending, after: undefined, filters }, 1)
        const sql = query.sql(database.dialect)
        const plan = await explain(sql, JSON.stringify([{ ord: 0, ...input }]))
        const name = `${listing.name} by ${used.join(' and ') || 'nothing'} ${descending ? 'downwards' : 'upwards'}`
        t.same(plan.filter((line) => FULL_SCAN.test(line)), [], `${name}: no table is walked whole`)
        if (used.some((name) => listing.filters[name]?.type === 'json')) continue
        const { name: index } = indexOf(listing, used)
        t.equal(
          plan.filter((line) => line.includes(index)).length,
          listing.recordBytes === undefined ? 2 : 4,
          `${name}: ${index} serves the page, its end and what is after it`
        )
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
const FULL_SCAN = databaseName === 'sqlite'
  ? /^SCAN (?!jsonb?_each|[ikvwxy]\b|\(subquery|CONSTANT|value\b)/
  : /Seq Scan on/

function sampleOf ({ definition, samples = {} }: ListFixture, name: string): unknown {
  if (definition.filters[name]?.type === 'json') return [1, 2, 3]
  if (!(name in samples)) throw new Error(`the fixture of ${definition.name} has no sample for its filter ${name}`)
  return samples[name]
}

function subsets (names: string[]): string[][] {
  return names.reduce<string[][]>((sets, name) => [...sets, ...sets.map((set) => [...set, name])], [[]])
}

/** Inserts enough rows for the planner to choose between plans, and collects statistics. */
async function fill (run: (sql: string) => Promise<void>): Promise<void> {
  const numbers = `(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${PETS}) SELECT i FROM n) AS n`
  const time = databaseName === 'sqlite' ? "'2026-11-21T10:00:00.000Z'" : "timestamp '2026-11-21 10:00:00'"
  await run(`INSERT INTO accounts (id, name, created_at) SELECT i, 'a', ${time} FROM ${numbers} WHERE i <= ${ACCOUNTS}`)
  const rows = { from: `FROM ${numbers}`, account: `i % ${ACCOUNTS} + 1`, time }
  for (const { insertRows } of lists) await run(insertRows(rows))
  await run('ANALYZE')
}
