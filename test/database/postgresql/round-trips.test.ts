import t from 'tap'
import type { Test } from 'tap'
import { classifyError } from '../../../src/database/error-classification.ts'
import type { Database } from '../../../src/database/database.ts'
import type { BeforeCommit, Command } from '../../../src/database/group-commit/command.ts'
import { createCommitter } from '../../../src/database/group-commit/committer.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import type { OwnStatement } from '../../../src/database/statements.ts'
import { nameOf } from '../../../src/database/postgresql/statement-names.ts'
import { startApp } from '../../support/app.ts'
import { database as databaseName, freshDatabase } from '../../support/database.ts'
import { fastPathsOf } from '../../support/fast-paths.ts'
import { newCategory, newOrder, stocked } from '../../support/fixtures.ts'
import { ignoreKeyUse, inOneGroup } from '../../support/groups.ts'
import { replacing, tamperingNetwork, type TamperingNetwork } from '../../support/tampering.ts'

const skip = databaseName === 'sqlite' && 'SQLite has no round trips'

interface Opened {
  database: Database
  network: TamperingNetwork
  /** The names of the accounts, as a connection of its own sees them. */
  names: () => Promise<string[]>
}

/** Opens a database behind a network that changes what is sent. */
async function open (t: Test): Promise<Opened> {
  const url = await freshDatabase(t)
  const network = await tamperingNetwork(t, url)
  const database = await openDatabase({ url: network.url, pool: 2, timeout: 60_000 })
  const onlooker = await openDatabase({ url, pool: 2, timeout: 60_000 })
  t.teardown(async () => { await Promise.all([database.close(), onlooker.close()]) })
  const names = async (): Promise<string[]> =>
    (await onlooker.reader.account.findMany({ orderBy: { id: 'asc' } })).map(({ name }) => name)
  return { database, network, names }
}

const insert = (name: string): OwnStatement =>
  ({ sql: 'INSERT INTO accounts (name, created_at) VALUES ($1, now())', values: [name] })

const FAILING: OwnStatement = { sql: 'SELECT 1 / (count(*) - count(*)) FROM accounts', values: [] }

/** Writes in a transaction, and commits afterwards or together with the statements. */
async function write ({ transact }: Database, how: 'apart' | 'together', ...statements: OwnStatement[]): Promise<void> {
  await transact(async ({ connection }) => {
    await (how === 'together' ? connection.runAndCommit!(statements) : connection.runTogether!(statements))
  })
}

t.test('a statement does not run when the BEGIN before it fails', { skip }, async (t) => {
  const { database, network, names } = await open(t)
  network.tamper = replacing('BEGIN', 'BEGIM')
  await t.rejects(write(database, 'apart', insert('Ada')), /BEGIM/)
  await t.rejects(write(database, 'together', insert('Ada')), /BEGIM/)
  await t.rejects(database.transact(async ({ connection }) => {
    const both = [connection.runTogether!([insert('Ada')]), connection.runTogether!([insert('Ada')])]
    await Promise.allSettled(both)
  }))
  await t.rejects(database.transact(async ({ prisma }) => {
    await prisma().account.create({ data: { name: 'Ada', createdAt: '2026-11-21T10:00:00.000Z' } })
  }))
  t.same(await names(), [])

  network.tamper = (bytes) => bytes
  await write(database, 'together', insert('Bob'))
  t.same(await names(), ['Bob'], 'the next transaction works')
})

t.test('COMMIT behind a statement that fails commits nothing, and the next transaction works', { skip }, async (t) => {
  const { database, names } = await open(t)
  await t.rejects(write(database, 'together', insert('Ada'), FAILING), { code: '22012' })
  await t.rejects(database.transact(async ({ connection }) => {
    await connection.runAndCommit!([insert('Ada'), FAILING]).catch(() => {})
  }), { code: '22012' }, 'a callback that ignores the error changes nothing')
  await t.rejects(database.transact(async ({ connection }) => {
    await connection.runTogether!([FAILING]).catch(() => {})
    await connection.runAndCommit!([insert('Ada')])
  }), { code: '22012' })
  t.same(await names(), [])
  await write(database, 'together', insert('Bob'))
  t.same(await names(), ['Bob'])
})

t.test('no statement runs after the one that commits', { skip }, async (t) => {
  const { database, names } = await open(t)
  await t.rejects(database.transact(async ({ connection }) => {
    const committing = connection.runAndCommit!([insert('Ada')])
    await t.rejects(connection.runTogether!([insert('meanwhile')]))
    await committing
    await t.rejects(connection.runAndCommit!([insert('afterwards')]))
    throw new Error('too late')
  }), { message: 'too late' })
  t.same(await names(), ['Ada'])
})

t.test('a COMMIT that the server answers with ROLLBACK is an error', { skip }, async (t) => {
  const { database, network, names } = await open(t)
  network.tamper = replacing('COMMIT', 'ABORT ')
  await t.rejects(write(database, 'together', insert('Ada')), { message: 'the database answered COMMIT with ROLLBACK' })
  await t.rejects(write(database, 'apart', insert('Ada')), { message: 'the database answered COMMIT with ROLLBACK' })
  t.same(await names(), [])
})

t.test('a statement that failed can be prepared again on its connection', { skip }, async (t) => {
  const { database, names } = await open(t)
  const [divide] = [{ sql: 'SELECT 1 / CAST($1 AS integer) AS one', values: ['0'] }]
  for (let attempt = 0; attempt < 3; attempt++) {
    await t.rejects(write(database, 'apart', divide), { code: '22012' })
  }
  await database.transact(async ({ connection }) => {
    t.same(await connection.runTogether!([{ ...divide, values: ['1'] }, insert('Ada')]), [[{ one: 1 }], []])
  })
  t.same(await names(), ['Ada'])
})

t.test('a connection lost around COMMIT leaves the outcome unknown, and nothing is repeated', { skip }, async (t) => {
  const { database, network, names } = await open(t)
  const commitEarly: BeforeCommit = async (tx) => {
    await tx.queryAndCommit(() => ({ with: [], select: 'SELECT 1 AS one' }))
    return {}
  }
  const { commit, close } = createCommitter(database, {
    queueLimit: 10, timeout: 60_000, tables: [], beforeCommit: [commitEarly]
  })
  t.teardown(close)
  const add: Command<{ name: string }, undefined> = {
    name: 'add',
    async run ({ defer }, inputs) {
      defer((parameter) => `
        INSERT INTO accounts (name, created_at) SELECT i.name, now()
        FROM ${database.dialect.jsonRows('i', { name: 'text' }, parameter)}`, inputs)
      return inputs.map(() => ({ record: undefined }))
    }
  }
  const during = async (name: string, tamper: TamperingNetwork['tamper'] | undefined): Promise<unknown> => {
    network.tamper = (bytes) => bytes.includes(nameOf('COMMIT')) && tamper !== undefined ? tamper(bytes) : bytes
    return await commit(add, { name }, { account: null }).catch((error: unknown) => error)
  }
  await during('Ada', undefined)
  t.equal(classifyError(await during('lost before', () => 'drop')), 'unavailable')
  t.equal(classifyError(await during('lost after', () => 'drop the answer')), 'unavailable')
  await during('Bob', undefined)
  t.same(await names(), ['Ada', 'lost after', 'Bob'])
})

t.test('a fast path whose connection is lost around COMMIT is not repeated', { skip }, async (t) => {
  const network = await tamperingNetwork(t, await freshDatabase(t))
  const { app, openAccount } = await startApp(t, { DATABASE_URL: network.url, DATABASE_POOL: '2' })
  const ada = await openAccount()
  const categoryId = await newCategory(ada)
  const fastPaths = fastPathsOf({ app })
  const during = async (name: string, tamper: TamperingNetwork['tamper']): Promise<number> => {
    // The first attempt only: a second one would succeed.
    let isFirst = true
    network.tamper = (bytes) => {
      if (!isFirst || !bytes.includes(nameOf('COMMIT'))) return bytes
      isFirst = false
      return tamper(bytes)
    }
    return (await ada.post('/pets', { name, categoryId })).status
  }
  t.equal(await during('Rex', (bytes) => bytes), 201)
  t.equal(await during('lost before', () => 'drop'), 503)
  t.equal(await during('lost after', () => 'drop the answer'), 503)
  t.equal(await during('Max', (bytes) => bytes), 201)
  t.same(fastPaths(), [true, true])
  const { body: pets } = await ada.get('/pets')
  t.same(pets.map(({ name }: { name: string }) => name), ['Rex', 'lost after', 'Max'])
})

t.test('rows that were read ahead are read again after a write', { skip }, async (t) => {
  const { database } = await open(t)
  const { commit, close } = createCommitter(database, { queueLimit: 10, timeout: 60_000, tables: [], beforeCommit: [] })
  t.teardown(close)
  await write(database, 'together', insert('Ada'))
  const NAMES = 'SELECT name FROM accounts'
  const rename: Command<{ defers: boolean }, unknown> = {
    name: 'rename',
    creates: { name: 'accounts', id: 'id', columns: {} },
    prefetch: (tx) => { tx.prefetch(NAMES) },
    async run (tx, inputs) {
      const sql = 'UPDATE accounts SET name = (SELECT i.name FROM json_to_recordset($1::json) AS i(name text))'
      if (inputs[0]!.defers) tx.defer(() => sql, [{ name: 'Bob' }])
      else await tx.execute(sql, [{ name: 'Cy' }])
      return [{ record: await tx.query(NAMES) }]
    }
  }
  t.same((await commit(rename, { defers: true }, { account: null })).record, [{ name: 'Bob' }])
  t.same((await commit(rename, { defers: false }, { account: null })).record, [{ name: 'Cy' }])
})

t.test('a lone write takes one round trip by a fast path, two without, and three with a key', { skip }, async (t) => {
  const network = await tamperingNetwork(t, await freshDatabase(t))
  const { app, openAccount } = await startApp(t, { DATABASE_URL: network.url, DATABASE_POOL: '2' })
  const ada = await openAccount()
  const categoryId = await newCategory(ada)
  const petId = await stocked(ada, 9)
  const orderId = await newOrder(ada, petId)
  ignoreKeyUse(app)
  const roundTrips = async (send: () => Promise<{ status: number }>): Promise<number> => {
    const before = network.roundTripsWith(nameOf('BEGIN'))
    t.match((await send()).status, /^20/)
    return network.roundTripsWith(nameOf('BEGIN')) - before
  }
  const key = { 'idempotency-key': 'one' }
  t.equal(await roundTrips(async () => await ada.post('/categories', { name: 'Dogs' })), 2, 'a category')
  t.equal(await roundTrips(async () => await ada.post('/pets', { name: 'Rex', categoryId })), 1, 'a pet')
  t.equal(await roundTrips(async () => await ada.patch(`/pets/${petId}`, { name: 'Max' })), 2, 'a change')
  t.equal(await roundTrips(async () => await ada.patch(`/inventory/${petId}`, { quantity: 9 })), 2, 'a count')
  t.equal(await roundTrips(async () => await ada.post('/store/orders', { petId })), 1, 'an order')
  t.equal(await roundTrips(async () => await ada.post('/messages', { message: 'Hi' })), 1, 'a message')
  t.equal(await roundTrips(async () => await ada.post('/store/orders', { petId }, key)), 3, 'an order with a key')
  const unchanged = async (): Promise<{ status: number }> =>
    await ada.patch(`/pets/${petId}`, {}, { 'idempotency-key': 'two' })
  t.equal(await roundTrips(unchanged), 3, 'a patch that changes nothing, with a key')
  const complete = { complete: true }
  t.equal(await roundTrips(async () => await ada.patch(`/store/orders/${orderId}`, complete)), 3, 'a completion')
  const together = [
    async () => await ada.post('/categories', { name: 'Cats' }), async () => await ada.post('/store/orders', { petId })
  ]
  t.equal(await roundTrips(async () => (await inOneGroup(app, together))[1]!), 2, 'a category and an order in a group')
  const fast = [
    async () => await ada.post('/pets', { name: 'Rex', categoryId }),
    async () => await ada.post('/store/orders', { petId })
  ]
  t.equal(await roundTrips(async () => (await inOneGroup(app, fast))[1]!), 1, 'a pet and an order in a group')
  const pets = Array.from({ length: 12 }, () => async () => await ada.post('/pets', { name: 'Rex', categoryId }))
  t.equal(await roundTrips(async () => (await inOneGroup(app, pets))[1]!), 1, 'twelve pets in a group')
  const last = { petId, quantity: 5 }
  t.equal(await roundTrips(async () => await ada.post('/store/orders', last)), 3, 'an order of the last units')
})

t.test('an event is enqueued for a webhook that another process has just added', { skip }, async (t) => {
  const url = await freshDatabase(t)
  const [one, two] = [await startApp(t, { DATABASE_URL: url }), await startApp(t, { DATABASE_URL: url })]
  const ada = await one.openAccount()
  await newCategory(ada)
  await newCategory(ada)
  const elsewhere = two.withKey(ada.key!)
  const hook = { url: 'https://example.com/', events: ['category.created', 'message.created'] }
  t.equal((await elsewhere.post('/webhooks', hook)).status, 201)
  await newCategory(ada)
  const { body: { id } } = await ada.post('/messages', { message: 'Hi' })
  const deliveries = await one.app.database.reader.delivery.findMany({ orderBy: { eventId: 'asc' } })
  t.same(deliveries.map(({ eventId }) => Number(eventId)), [3, 4])
  const message = await one.app.database.reader.message.findFirst({ where: { id } })
  t.equal(message!.waiting, 1)
  const { body: events } = await ada.get('/events')
  t.same(events.map((event: { id: unknown }) => Number(event.id)), [1, 2, 3, 4], 'the failed attempt left no gap')
})
