// Only on PostgreSQL: SQLite has no round trips.

import t from 'tap'
import type { Test } from 'tap'
import type { Database } from '../../../src/database/database.ts'
import type { Commit } from '../../../src/database/group-commit/committer.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import type { OwnStatement } from '../../../src/database/statements.ts'
import { nameOf } from '../../../src/database/postgresql/statement-batch.ts'
import { ifMatch, key } from '../../contract/fields.ts'
import { allWrites } from '../../support/all-writes.ts'
import { startApp, type Answer } from '../../support/app.ts'
import { database as databaseName, freshDatabase } from '../../support/database.ts'
import { loadFixtures, mergeTables, type PrepareWrite } from '../../support/fixture.ts'
import { newCategory, newOrder, newPet, stocked } from '../../support/fixtures.ts'
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

const fixtures = await loadFixtures()
const KEYED = mergeTables(fixtures.map(({ keyedWrites }) => keyedWrites))
const SECRET = mergeTables(fixtures.map(({ secretWrites }) => secretWrites))
const CHANGES = mergeTables(fixtures.map(({ changes }) => changes))

/** What else some writes do than in the fixtures. */
const FURTHER: Record<string, PrepareWrite> = {
  updatePet: async (ada) => ['PATCH', `/pets/${await newPet(ada)}`, {}],
  placeOrder: async (ada) => ['POST', '/store/orders', { petId: await stocked(ada, 1), complete: true }],
  updateOrder: async (ada) => [
    'PATCH', `/store/orders/${await newOrder(ada, await stocked(ada, 2))}`, { shipDate: '2027-01-01T12:00:00Z' }
  ],
  putLimits: async () => ['PUT', '/lab/limits', { requests: 100, windowSeconds: 60 }]
}

interface Request { prepare: PrepareWrite, headers: Record<string, string> }

/** Returns the requests of a write, which has the name of its operation: without a key, with one, with a condition. */
function requestsOf (name: string): Request[] {
  const { [name]: keyed } = KEYED
  const { [name]: change } = CHANGES
  const once = keyed === undefined ? {} : key('once')
  const changed: PrepareWrite | undefined = change && (async (client) => {
    const { method, path, bodies: [body] } = await change(client)
    return [method, path, body]
  })
  const requests = [
    { prepare: keyed?.prepare ?? SECRET[name], headers: {} },
    { prepare: keyed?.prepare, headers: once },
    { prepare: changed, headers: { ...once, ...ifMatch('*') } },
    { prepare: FURTHER[name], headers: {} }
  ].filter((request): request is Request => request.prepare !== undefined)
  if (requests.length === 0) throw new Error(`no fixture has a request for the write ${name}`)
  return requests
}

t.test('every write takes two round trips', { skip }, async (t) => {
  const network = await tamperingNetwork(t, await freshDatabase(t))
  const { app, openAccount } = await startApp(t, { DATABASE_URL: network.url, DATABASE_POOL: '2' })
  ignoreKeyUse(app)
  const { commit, database: { prisma } } = app
  const committed: string[] = []
  app.commit = (async (command, input, context) => {
    committed.push(command.name)
    return await commit(command, input, context)
  }) as Commit
  const roundTrips = async (t: Test, send: () => Promise<Answer>): Promise<number> => {
    committed.length = 0
    const before = network.roundTripsWith(nameOf('BEGIN'))
    t.match((await send()).status, /^20/)
    return network.roundTripsWith(nameOf('BEGIN')) - before
  }

  for (const { name } of await allWrites()) {
    await t.test(`${name}, also with a key, a condition and a webhook, where it takes them`, async (t) => {
      for (const enabled of [false, true]) {
        for (const { prepare, headers } of requestsOf(name)) {
          const ada = await openAccount()
          await ada.post('/webhooks', { url: 'https://example.com/', enabled })
          const [method, path, body] = await prepare(ada)
          const sent = await roundTrips(t, async () => await ada.request(method, path, { headers, body }))
          t.equal(sent, 2, JSON.stringify({ method, path, body, headers, enabled }))
          t.same(committed, [name])
          if (!enabled) continue
          const where = { accountId: BigInt(ada.account!) }
          const enqueued = await prisma.delivery.groupBy({ by: ['eventId'], where: { ...where, eventId: { gt: 0 } } })
          t.equal(enqueued.length, await prisma.event.count({ where }), 'each event is enqueued')
        }
      }
    })
  }

  await t.test('several writes in a group', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 9)
    const orderId = await newOrder(ada, petId)
    const together = [
      async () => await ada.post('/categories', { name: 'Cats' }),
      async () => await ada.delete(`/store/orders/${orderId}`),
      async () => await ada.post('/store/orders', { petId }, key('grouped'))
    ]
    t.equal(await roundTrips(t, async () => (await inOneGroup(app, together))[2]!), 2)
  })
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
