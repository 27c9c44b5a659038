import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { classifyError } from '../../src/database/error-classification.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import type { Database } from '../../src/database/database.ts'
import { database as databaseName, freshDatabase } from '../support/database.ts'
import { openWithWriterThread } from '../support/writer-thread.ts'

const CREATED_AT = '2026-11-21T10:00:00.000Z'

interface Opened {
  database: Database
  /** The names of the accounts, as a connection of its own sees them. */
  names: () => Promise<string[]>
}

/** The ways in which transactions run: on SQLite, a thread of their own runs them while the disk is slow. */
const WAYS = databaseName === 'sqlite' ? ['in this thread', 'in the writer thread'] : ['on a server']

for (const way of WAYS) t.test(way, async (t) => { await testTransactions(t, way === 'in the writer thread') })

async function open (t: Test, inThread: boolean, timeout = 60_000): Promise<Opened> {
  const url = await freshDatabase(t)
  const options = { url, pool: 2, timeout }
  const database = inThread ? await openWithWriterThread(options) : await openDatabase(options)
  const onlooker = await openDatabase({ url, pool: 2, timeout: 60_000 })
  t.teardown(async () => { await Promise.all([database.close(), onlooker.close()]) })
  const names = async (): Promise<string[]> =>
    (await onlooker.reader.account.findMany({ orderBy: { id: 'asc' } })).map(({ name }) => name)
  return { database, names }
}

interface NewRow { data: { name: string, createdAt: string } }

const account = (name: string): NewRow => ({ data: { name, createdAt: CREATED_AT } })

async function testTransactions (t: Test, inThread: boolean): Promise<void> {
  t.test('a transaction commits when its callback resolves, and is invisible before', async (t) => {
    const { database, names } = await open(t, inThread)
    const during = await database.transact(async ({ prisma }) => {
      await prisma().account.create(account('Ada'))
      t.equal(await prisma().account.count(), 1)
      return await names()
    })
    t.same(during, [])
    t.same(await names(), ['Ada'])
  })

  t.test('a transaction rolls back when its callback rejects, and the next one works', async (t) => {
    const { database, names } = await open(t, inThread)
    await t.rejects(database.transact(async ({ prisma }) => {
      await prisma().account.create(account('Ada'))
      throw new Error('changed its mind')
    }), { message: 'changed its mind' })
    await database.transact(async ({ prisma }) => { await prisma().account.create(account('Bob')) })
    t.same(await names(), ['Bob'])
  })

  t.test('a transaction with a failed statement does not commit, even if its callback ignores the error', async (t) => {
    const { database, names } = await open(t, inThread)
    await t.rejects(database.transact(async ({ connection, prisma }) => {
      await prisma().account.create(account('Ada'))
      await connection.queryRaw({ sql: 'SELECT nothing FROM nowhere', args: [], argTypes: [] }).catch(() => {})
    }))
    t.same(await names(), [])
  })

  t.test('a call of Prisma Client with several statements is part of the transaction', async (t) => {
    const { database, names } = await open(t, inThread)
    const withKey = (name: string): NewRow => {
      const apiKeys = { create: { prefix: name, hash: name, createdAt: CREATED_AT } }
      return { data: { ...account(name).data, ...{ apiKeys } } }
    }
    await t.rejects(database.transact(async ({ prisma }) => {
      await prisma().account.create(withKey('Ada'))
      throw new Error('changed its mind')
    }))
    await database.transact(async ({ prisma }) => {
      await prisma().account.create(withKey('Bob'))
    })
    t.same(await names(), ['Bob'])
    t.equal(await database.reader.apiKey.count(), 1)
  })

  t.test('a statement after the time-out of its transaction runs neither alone nor in the next one', async (t) => {
    const { database, names } = await open(t, inThread, 2_000)
    let continues = (): void => {}
    const signal = new Promise<void>((resolve) => { continues = resolve })
    let late: Promise<unknown> | undefined
    const error: unknown = await database.transact(async ({ connection, prisma }) => {
      const client = prisma()
      await client.account.create(account('Ada'))
      await signal
      late = Promise.allSettled([
        client.account.create(account('late')),
        connection.executeRaw({
          sql: `INSERT INTO accounts (name, created_at) VALUES ('later', '${CREATED_AT}')`, args: [], argTypes: []
        })
      ])
      await late
    }).catch((error: unknown) => error)
    t.equal(classifyError(error), 'unavailable', String(error))

    await database.transact(async ({ prisma }) => {
      await prisma().account.create(account('Bob'))
      continues()
      await sleep(50)
      const outcomes = await late as Array<PromiseSettledResult<unknown>>
      t.same(outcomes.map(({ status }) => status), ['rejected', 'rejected'])
    })
    t.same(await names(), ['Bob'])
  })

  t.test('a write beside an open transaction does not end with it', async (t) => {
    const { database, names } = await open(t, inThread)
    let beside: Promise<unknown> | undefined
    await t.rejects(database.transact(async ({ prisma }) => {
      await prisma().account.create(account('Ada'))
      beside = Promise.all([
        database.writer.account.create(account('Bob')), database.writer.$executeRaw`DELETE FROM accounts WHERE name = 'Cy'`
      ])
      await sleep(50)
      throw new Error('changed its mind')
    }))
    await beside
    t.same(await names(), ['Bob'])
  })
}
