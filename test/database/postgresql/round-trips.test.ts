// Only on PostgreSQL: SQLite has no round trips.

import t from 'tap'
import type { Test } from 'tap'
import type { Database } from '../../../src/database/database.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import type { OwnStatement } from '../../../src/database/statements.ts'
import { nameOf } from '../../../src/database/postgresql/statement-batch.ts'
import { startApp, type Answer } from '../../support/app.ts'
import { database as databaseName, freshDatabase } from '../../support/database.ts'
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
    (await onlooker.prisma.account.findMany({ orderBy: { id: 'asc' } })).map(({ name }) => name)
  return { database, network, names }
}

const insert = (name: string): OwnStatement =>
  ({ sql: 'INSERT INTO accounts (name, created_at) VALUES ($1, now())', values: [name] })

const FAILING: OwnStatement = { sql: 'SELECT 1 / (count(*) - count(*)) FROM accounts', values: [] }

/** Writes in a transaction, and commits afterwards or together with the statements. */
async function write ({ transact }: Database, how: 'apart' | 'together', ...statements: OwnStatement[]): Promise<void> {
  await transact(async (transaction) => {
    await (how === 'together' ? transaction.commit(statements) : transaction.run(statements))
  })
}

t.test('a statement does not run when the BEGIN before it fails', { skip }, async (t) => {
  const { database, network, names } = await open(t)
  network.tamper = replacing('BEGIN', 'BEGIM')
  await t.rejects(write(database, 'apart', insert('Ada')), /BEGIM/)
  await t.rejects(write(database, 'together', insert('Ada')), /BEGIM/)
  await t.rejects(database.transact(async (transaction) => {
    const both = [transaction.run([insert('Ada')]), transaction.run([insert('Ada')])]
    await Promise.allSettled(both)
  }))
  t.same(await names(), [])

  network.tamper = (bytes) => bytes
  await write(database, 'together', insert('Bob'))
  t.same(await names(), ['Bob'], 'the next transaction works')
})

t.test('COMMIT behind a statement that fails commits nothing, and the next transaction works', { skip }, async (t) => {
  const { database, names } = await open(t)
  await t.rejects(write(database, 'together', insert('Ada'), FAILING), { code: '22012' })
  await t.rejects(database.transact(async (transaction) => {
    await transaction.commit([insert('Ada'), FAILING]).catch(() => {})
  }), { code: '22012' }, 'a callback that ignores the error changes nothing')
  await t.rejects(database.transact(async (transaction) => {
    await transaction.run([FAILING]).catch(() => {})
    await transaction.commit([insert('Ada')])
  }), { code: '22012' })
  t.same(await names(), [])
  await write(database, 'together', insert('Bob'))
  t.same(await names(), ['Bob'])
})

t.test('no statement runs after the one that commits', { skip }, async (t) => {
  const { database, names } = await open(t)
  await t.rejects(database.transact(async (transaction) => {
    const committing = transaction.commit([insert('Ada')])
    await t.rejects(transaction.run([insert('meanwhile')]))
    await committing
    await t.rejects(transaction.commit([insert('afterwards')]))
    throw new Error('too late')
  }), { code: 'DATABASE_UNAVAILABLE', cause: { message: 'too late' } })
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
  await database.transact(async (transaction) => {
    t.same(await transaction.run([{ ...divide, values: ['1'] }, insert('Ada')]), [[{ one: 1 }], []])
  })
  t.same(await names(), ['Ada'])
})

t.test('a connection lost around COMMIT leaves the outcome unknown, and nothing is repeated', { skip }, async (t) => {
  const network = await tamperingNetwork(t, await freshDatabase(t))
  const { openAccount } = await startApp(t, { DATABASE_URL: network.url, DATABASE_POOL: '2' })
  const ada = await openAccount()
  const categoryId = await newCategory(ada)
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
  const { body: pets } = await ada.get('/pets')
  t.same(pets.map(({ name }: { name: string }) => name), ['Rex', 'lost after', 'Max'])
})

t.test('every write takes two round trips, also with a key, a condition and a webhook', { skip }, async (t) => {
  const network = await tamperingNetwork(t, await freshDatabase(t))
  const { app, openAccount } = await startApp(t, { DATABASE_URL: network.url, DATABASE_POOL: '2' })
  const ada = await openAccount()
  ignoreKeyUse(app)
  const categoryId = await newCategory(ada)
  const petId = await stocked(ada, 99)
  const orders = [await newOrder(ada, petId), await newOrder(ada, petId), await newOrder(ada, petId)] as const
  const { body: { id: webhookId } } = await ada.post('/webhooks', { url: 'https://example.com/', enabled: false })
  const roundTrips = async (send: () => Promise<{ status: number }>): Promise<number> => {
    const before = network.roundTripsWith(nameOf('BEGIN'))
    t.match((await send()).status, /^20/)
    return network.roundTripsWith(nameOf('BEGIN')) - before
  }
  const writes: Record<string, (headers: Record<string, string>) => Promise<Answer>> = {
    'a category': async (headers) => await ada.post('/categories', { name: 'Dogs' }, headers),
    'a change of a category': async (headers) => await ada.patch(`/categories/${categoryId}`, { name: 'Cats' }, headers),
    'a pet': async (headers) => await ada.post('/pets', { name: 'Rex', categoryId }, headers),
    'a change of a pet': async (headers) => await ada.patch(`/pets/${petId}`, { name: 'Max' }, headers),
    'a patch that changes nothing': async (headers) => await ada.patch(`/pets/${petId}`, {}, headers),
    'a count': async (headers) => await ada.patch(`/inventory/${petId}`, { quantity: 99 }, headers),
    'an order': async (headers) => await ada.post('/store/orders', { petId }, headers),
    'a complete order': async (headers) => await ada.post('/store/orders', { petId, complete: true }, headers),
    'a message': async (headers) => await ada.post('/messages', { message: 'Hi' }, headers),
    'a change of a webhook': async (headers) =>
      await ada.patch(`/webhooks/${webhookId}`, { events: ['message.created'] }, headers)
  }
  const changes: Array<(headers: Record<string, string>) => Promise<Answer>> = [
    async (headers) => await ada.patch(`/store/orders/${orders[0]}`, { complete: true }, headers),
    async (headers) => await ada.delete(`/store/orders/${orders[1]}`, headers)
  ]
  for (const webhook of ['no webhook', 'a webhook']) {
    if (webhook === 'a webhook') await ada.patch(`/webhooks/${webhookId}`, { enabled: true, events: ['pet.created'] })
    for (const [name, send] of Object.entries(writes)) {
      t.equal(await roundTrips(async () => await send({})), 2, `${name}, ${webhook}`)
      const headers = { 'idempotency-key': `${name} ${webhook}`.replaceAll(' ', '-') }
      t.equal(await roundTrips(async () => await send(headers)), 2, `${name} with a key, ${webhook}`)
    }
  }
  t.equal(await roundTrips(async () => await ada.post('/account/keys', {})), 2, 'an API key, which takes no key')
  for (const send of changes) t.equal(await roundTrips(async () => await send({ 'if-match': '"1"' })), 2)
  const together = [
    async () => await ada.post('/categories', { name: 'Cats' }),
    async () => await ada.delete(`/store/orders/${orders[2]}`),
    async () => await ada.post('/store/orders', { petId }, { 'idempotency-key': 'grouped' })
  ]
  t.equal(await roundTrips(async () => (await inOneGroup(app, together))[2]!), 2, 'several writes in a group')
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
  const deliveries = await one.app.database.prisma.delivery.findMany({ orderBy: { eventId: 'asc' } })
  t.same(deliveries.map(({ eventId }) => Number(eventId)), [3, 4])
  const message = await one.app.database.prisma.message.findFirst({ where: { id } })
  t.equal(message!.waiting, 1)
  const { body: events } = await ada.get('/events')
  t.same(events.map((event: { id: unknown }) => Number(event.id)), [1, 2, 3, 4], 'the failed attempt left no gap')
})
