import { setImmediate as nextTurn } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { classifyError } from '../../../src/database/error-classification.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import { nameOf } from '../../../src/database/postgresql/statement-names.ts'
import type { OwnStatement } from '../../../src/database/statements.ts'
import { startApp } from '../../support/app.ts'
import { database as databaseName, freshDatabase } from '../../support/database.ts'
import { newPet } from '../../support/fixtures.ts'
import { tamperingNetwork } from '../../support/tampering.ts'

const skip = databaseName === 'sqlite' && 'SQLite has no pool'

t.test('a busy service opens at most DATABASE_POOL connections, and uses them', { skip }, async (t) => {
  // How many of the larger pool are open at once depends on the machine. The default is 10.
  for (const pool of [2, 14]) {
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
    t.ok(count >= 2 && count <= pool, `${count} of ${pool} connections`)
  }
})

t.test('a connection that is lost during a read fails the read, and not the process', { skip }, async (t) => {
  const network = await tamperingNetwork(t, await freshDatabase(t))
  const database = await openDatabase({ url: network.url, pool: 2, timeout: 60_000 })
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

t.test('statements of one message have their rows and their errors independently', { skip }, async (t) => {
  const url = await freshDatabase(t)
  const { reads, close } = await openDatabase({ url, pool: 2, timeout: 60_000 })
  t.teardown(close)
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  t.teardown(async () => { await holder.end() })
  const statement = (sql: string): OwnStatement => ({ sql, values: [] })
  const [one, wait, two] = ['SELECT 1 AS n', 'SELECT pg_advisory_xact_lock(1)', 'SELECT 2 AS n'].map(statement)
  const broken = statement('SELECT 1 / (count(*) - count(*)) FROM accounts')

  await holder.query('SELECT pg_advisory_lock(1)')
  const settled: number[] = []
  const results = reads.runEach!([one!, wait!, two!])
  for (const [i, rows] of results.entries()) void rows.then(() => { settled.push(i) })
  t.same(await results[0], [{ n: 1 }])
  await nextTurn()
  t.same(settled, [0], 'the first does not wait for the second')
  await holder.query('SELECT pg_advisory_unlock(1)')
  t.same(await results[2], [{ n: 2 }])
  t.same(settled, [0, 1, 2])

  for (let round = 0; round < 2; round++) {
    const outcomes = await Promise.allSettled(reads.runEach!([one!, broken, two!, broken, one!]))
    t.match(outcomes, [
      { value: [{ n: 1 }] }, { reason: { code: '22012' } }, { value: [{ n: 2 }] }, { reason: { code: '22012' } },
      { value: [{ n: 1 }] }
    ], 'those behind one that fails run again')
  }
})

t.test('a connection that is lost during a message fails its statements, and none runs again', { skip }, async (t) => {
  const network = await tamperingNetwork(t, await freshDatabase(t))
  const { reads, close } = await openDatabase({ url: network.url, pool: 2, timeout: 60_000 })
  t.teardown(close)
  const statements = [1, 2, 3].map((n): OwnStatement => ({ sql: `SELECT ${n} AS n`, values: [] }))
  t.same(await Promise.all(reads.runEach!(statements)), [[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]])
  let messages = 0
  network.tamper = (bytes) => {
    if (!bytes.includes(nameOf(statements[1]!.sql))) return bytes
    messages++
    return 'drop'
  }
  const outcomes = await Promise.allSettled(reads.runEach!(statements))
  t.same(outcomes.map((outcome) => outcome.status === 'rejected' && classifyError(outcome.reason)),
    ['unavailable', 'unavailable', 'unavailable'])
  t.equal(messages, 1)
  network.tamper = (bytes) => bytes
  t.same(await Promise.all(reads.runEach!(statements)), [[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]])
})

t.test('statements that are combined at run time use up no names of others', { skip }, async (t) => {
  // With two connections, one is for transactions.
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 2, timeout: 60_000 })
  t.teardown(opened.close)
  const read: OwnStatement = { sql: 'SELECT -7 AS n', values: [] }
  await Promise.all(opened.reads.runEach!([read]))
  const command: OwnStatement = { sql: 'SELECT -8 AS n', values: [] }
  let combinations = 0
  await opened.transact(async ({ connection }) => {
    for (let group = 0; group < 30; group++) {
      const combined = Array.from({ length: 40 }, () => ({ sql: `SELECT ${++combinations} AS n`, values: [] }))
      const rows = await connection.runTogether!([...combined, command])
      t.same(rows.slice(-2), [[{ n: combinations }], [{ n: -8 }]])
    }
  })
  const prepared = { sql: 'SELECT name FROM pg_prepared_statements', values: [] }
  const namesOn = async (run: () => Promise<object[][]>): Promise<string[]> =>
    (await run()).at(-1)!.map((row) => (row as { name: string }).name)
  // The first request of its kind comes later.
  const laterRead: OwnStatement = { sql: 'SELECT -9 AS n', values: [] }
  const ofReads = await namesOn(async () => await Promise.all(opened.reads.runEach!([laterRead, prepared])))
  for (const { sql } of [read, laterRead]) t.ok(ofReads.includes(nameOf(sql)), sql)
  await opened.transact(async ({ connection }) => {
    const names = await namesOn(async () => await connection.runTogether!([command, prepared]))
    t.ok(names.length <= 510, `${names.length} of ${combinations} are prepared`)
    t.ok(names.includes(nameOf(command.sql)), 'one that is used again and again among them')
  })
})
