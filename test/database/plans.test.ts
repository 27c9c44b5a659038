import t from 'tap'
import type { Test } from 'tap'
import { openDatabase } from '../../src/database/open-database.ts'
import { indexOf, pageQuery } from '../../src/database/sql/keyset-pagination.ts'
import { SqliteConnection } from '../../src/database/sqlite/connection.ts'
import { DiskSpeed } from '../../src/database/sqlite/disk-speed.ts'
import { startApp } from '../support/app.ts'
import { database as databaseName, freshDatabase } from '../support/database.ts'
import { loadFixtures, type ListFixture } from '../support/fixture.ts'
import { createOwner, hotPaths } from './hot-paths.ts'

const ACCOUNTS = 3
const PETS = 3_000

const lists = (await loadFixtures()).flatMap(({ list }) => list ?? [])

t.test('every list reads the index of its filters, in both orders', async (t) => {
  const database = await openDatabase({ url: await freshDatabase(t), pool: 2, timeout: 60_000 })
  t.teardown(database.close)
  await fill(async (sql) => { await database.prisma.$executeRawUnsafe(sql) })

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
        const { index, columns } = indexOf(listing, used)
        const ranges = columns.length === index.columns.length ? 1 : index.last!.length
        t.equal(
          plan.filter((line) => line.includes(index.name)).length,
          (listing.recordBytes === undefined ? 2 : 4) * ranges,
          `${name}: ${index.name} serves the page, its end and what is after it`
        )
      }
    }
  }

  async function explain (sql: string, input: string): Promise<string[]> {
    const explained = databaseName === 'sqlite' ? `EXPLAIN QUERY PLAN ${sql}` : `EXPLAIN ${sql}`
    const rows = await database.prisma.$queryRawUnsafe<Array<Record<string, unknown>>>(explained, input)
    return rows.map((row) => String(row.detail ?? row['QUERY PLAN']))
  }
})

/** Finds a full scan of a table: SCAN on SQLite, Seq Scan on PostgreSQL. A scan of the statement's input is allowed. */
const FULL_SCAN = databaseName === 'sqlite'
  ? /^SCAN (?!jsonb?_each|[ikvwxy]\b|(part|merged|wanted)\b|\(subquery|CONSTANT|value\b)/
  : /Seq Scan on/

function sampleOf ({ definition, samples = {} }: ListFixture, name: string): unknown {
  if (definition.filters[name]?.type === 'json') return [1, 2, 3]
  if (!(name in samples)) throw new Error(`the fixture of ${definition.name} has no sample for its filter ${name}`)
  return samples[name]
}

function subsets (names: string[]): string[][] {
  return names.reduce<string[][]>((sets, name) => [...sets, ...sets.map((set) => [...set, name])], [[]])
}

/**
 * Inserts enough rows for the planner to choose between plans, and collects statistics.
 *
 * @param account an expression for the account of row `i`
 */
async function fill (
  run: (sql: string) => Promise<void>, account = `i % ${ACCOUNTS} + 1`, accounts = ACCOUNTS
): Promise<void> {
  const numbers = `(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${PETS}) SELECT i FROM n) AS n`
  const time = databaseName === 'sqlite' ? "'2026-11-21T10:00:00.000Z'" : "timestamp '2026-11-21 10:00:00'"
  await run(`INSERT INTO accounts (id, name, created_at) SELECT i, 'a', ${time} FROM ${numbers} WHERE i <= ${accounts}`)
  const rows = { from: `FROM ${numbers}`, account, time }
  for (const { insertRows } of lists) await run(insertRows(rows))
  await run(`INSERT INTO events (account_id, id, type, timestamp, data) SELECT ${account}, i, 'a', ${time}, '{}' ${rows.from}`)
  await run(`INSERT INTO idempotency_records (account_id, key, fingerprint, created_at, expires_at)
    SELECT ${account}, 'k' || i, 'f', ${time}, ${time} ${rows.from}`)
  await run(`INSERT INTO deliveries (account_id, webhook_id, event_id, next_try_at, give_up_at, settled_at)
    SELECT ${account}, ${account}, i, ${time}, ${time}, ${time} ${rows.from}`)
  await run(`INSERT INTO webhook_attempts (account_id, webhook_id, id, event_id, at, duration_ms, total_bytes)
    SELECT ${account}, ${account}, i, i, ${time}, 1, i ${rows.from}`)
  await run(`INSERT INTO snapshot_rows (account_id, snapshot_id, kind, row_id, data)
    SELECT ${account}, 1, 'pets', i, '{}' ${rows.from}`)
  await run(`INSERT INTO lab_states (account_id, changed_at) SELECT id, ${time} FROM accounts`)
  await run('ANALYZE')
}

/** Every tenth row belongs to an account of its own, and all others to the account 1. */
const SKEWED = 'CASE WHEN i % 10 = 0 THEN i / 10 + 1 ELSE 1 END'

/** Scans of little: of partial indexes with what is due or open, and of what a statement has found. */
const SMALL_SCAN = new RegExp([
  'INDEX (messages_plain_idx|faults_open_idx|accounts_moved_clock_idx)',
  'INDEX (journals_on_idx|sqlite_autoindex_account_limits_1)',
  '^SCAN (walk|open|s|locked_\\w+|sqlite_sequence|_prisma_migrations)$'
].join('|'))

/** A walk over all deliveries of an account, which can have far more of them than records. */
const WHOLE_ACCOUNT = /^SEARCH d USING INDEX deliveries_account_id_id_idx \(account_id=\?\)$/

/** A sort. The texts of a page are joined in order: these are few. */
const SORT = /TEMP B-TREE (?!FOR string_agg)/

/**
 * Statements whose sorts are small: of a group's inputs, of rows of which an account has at most some hundreds, of the
 * rows of a snapshot, of the ranges of which a list takes a page each, and of the deliveries since the last poll.
 */
const SMALL_SORT = new RegExp([
  '^\\s*INSERT INTO (idempotency_records|lab_states)',
  '(FROM|JOIN) (api_keys|webhooks|faults) \\w+\\s+WHERE',
  'JOIN snapshot_rows x .*\\s+GROUP BY x\\.kind',
  '\\) AS part UNION ALL ',
  'SELECT DISTINCT v\\.webhook FROM',
  '\\sUNION\\s+SELECT i\\.account, l\\.'
].join('|'))

t.test('every statement of the hot paths looks its rows up, also after an ANALYZE of skewed tables', {
  skip: databaseName !== 'sqlite' && 'plan-buffers.test.ts tests PostgreSQL'
}, async (t) => {
  const statements = await collectStatements(t)
  const client = new SqliteConnection(new URL(await freshDatabase(t)).pathname)
  t.teardown(async () => { await client.close() })
  await fill(async (sql) => { client.runScript(sql) }, SKEWED, PETS / 10 + 1)

  const wasteful: string[] = []
  for (const sql of statements) {
    const plan = client.all(`EXPLAIN QUERY PLAN ${sql}`, parametersOf(sql)) as Array<{ detail: string }>
    for (const { detail } of plan) {
      const isScan = (FULL_SCAN.test(detail) && !SMALL_SCAN.test(detail)) || WHOLE_ACCOUNT.test(detail)
      if (isScan || (SORT.test(detail) && !SMALL_SORT.test(sql))) wasteful.push(`${detail}: ${sql.replace(/\s+/g, ' ').trim()}`)
    }
  }
  t.same(wasteful, [])
})

/** Returns the statements that a service runs on its hot paths. */
async function collectStatements (t: Test): Promise<Set<string>> {
  const statements = new Set<string>()
  const { all, query, execute } = SqliteConnection.prototype
  const collect = (sql: string): void => {
    if (/^\s*(SELECT|WITH|INSERT|UPDATE|DELETE)/.test(sql)) statements.add(sql)
  }
  Object.assign(SqliteConnection.prototype, {
    all (sql, values) {
      collect(sql)
      return all.call(this, sql, values)
    },
    query (statement) {
      collect(statement.sql)
      return query.call(this, statement)
    },
    execute (statement) {
      collect(statement.sql)
      return execute.call(this, statement)
    }
  } satisfies ThisType<SqliteConnection> & Partial<SqliteConnection>)
  // While the disk seems slow, as on a busy machine, transactions run in a thread, which has classes of its own.
  const { isSlow } = DiskSpeed.prototype
  DiskSpeed.prototype.isSlow = () => false
  t.teardown(() => {
    Object.assign(SqliteConnection.prototype, { all, query, execute })
    DiskSpeed.prototype.isSlow = isSlow
  })
  const service = await startApp(t)
  const [ada, eve, bob] = [await service.openAccount(), await service.openAccount(), await service.openAccount()]
  const owner = await createOwner(ada, bob)
  statements.clear()
  for (const action of Object.values(await hotPaths(service, ada, owner, eve.account!))) await action()
  return statements
}

function parametersOf (sql: string): null[] {
  return Array.from(sql.matchAll(/\?/g), () => null)
}
