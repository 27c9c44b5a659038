import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { classifyError } from '../../src/database/error-classification.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import type { Database } from '../../src/database/database.ts'
import type { OwnStatement } from '../../src/database/statements.ts'
import { database as databaseName, freshDatabase } from '../support/database.ts'
import { openWithWriterThread } from '../support/writer-thread.ts'

const CREATED_AT = '2026-11-21T10:00:00.000Z'

interface Opened {
  database: Database
  onlooker: Database
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
    (await onlooker.prisma.account.findMany({ orderBy: { id: 'asc' } })).map(({ name }) => name)
  return { database, onlooker, names }
}

const insert = (name: string): OwnStatement =>
  ({ sql: `INSERT INTO accounts (name, created_at) VALUES ('${name}', '${CREATED_AT}')`, values: [] })

async function testTransactions (t: Test, inThread: boolean): Promise<void> {
  t.test('a transaction commits when its callback resolves, and is invisible before', async (t) => {
    const { database, names } = await open(t, inThread)
    const during = await database.transact(async ({ run }) => {
      await run([insert('Ada')])
      t.same(await run([{ sql: 'SELECT name FROM accounts', values: [] }]), [[{ name: 'Ada' }]])
      return await names()
    })
    t.same(during, [])
    t.same(await names(), ['Ada'])
  })

  t.test('a transaction rolls back when its callback rejects, and the next one works', async (t) => {
    const { database, names } = await open(t, inThread)
    await t.rejects(database.transact(async ({ run }) => {
      await run([insert('Ada')])
      throw new Error('changed its mind')
    }), { message: 'changed its mind' })
    await database.transact(async ({ run }) => { await run([insert('Bob')]) })
    t.same(await names(), ['Bob'])
  })

  t.test('a transaction with a failed statement does not commit, even if its callback ignores the error', async (t) => {
    const { database, names } = await open(t, inThread)
    await t.rejects(database.transact(async ({ run }) => {
      await run([insert('Ada')])
      await run([{ sql: 'SELECT nothing FROM nowhere', values: [] }]).catch(() => {})
    }))
    t.same(await names(), [])
  })

  t.test('work that fails after its COMMIT has an unknown outcome, so that nobody repeats it', async (t) => {
    const { database, names } = await open(t, inThread)
    const error: unknown = await database.transact(async (transaction) => {
      await transaction.commit([insert('Ada')])
      throw new Error('cannot answer')
    }).catch((error: unknown) => error)
    t.equal(classifyError(error), 'unavailable', String(error))
    t.match(error, { cause: { message: 'cannot answer' } })
    await database.transact(async ({ run }) => { await run([insert('Bob')]) })
    t.same(await names(), ['Ada', 'Bob'])
  })

  t.test('a statement after the time-out of its transaction runs neither alone nor in the next one', async (t) => {
    const { database, names } = await open(t, inThread, 2_000)
    let continues = (): void => {}
    const signal = new Promise<void>((resolve) => { continues = resolve })
    let late: Promise<unknown> | undefined
    const error: unknown = await database.transact(async ({ run }) => {
      await run([insert('Ada')])
      await signal
      late = Promise.allSettled([run([insert('late')]), run([insert('later')])])
      await late
    }).catch((error: unknown) => error)
    t.equal(classifyError(error), 'unavailable', String(error))

    await database.transact(async ({ run }) => {
      await run([insert('Bob')])
      continues()
      await sleep(50)
      const outcomes = await late as Array<PromiseSettledResult<unknown>>
      t.same(outcomes.map(({ status }) => status), ['rejected', 'rejected'])
    })
    t.same(await names(), ['Bob'])
  })

  const skip = databaseName === 'postgresql' && 'on a server, BEGIN does not wait for locks'
  t.test('statements after a BEGIN that failed do not commit by themselves', { skip }, async (t) => {
    const { database, onlooker, names } = await open(t, inThread, 1_000)
    await onlooker.transact(async (holder) => {
      await holder.run([insert('Eve')])
      await t.rejects(database.transact(async ({ run }) => {
        await Promise.allSettled([run([insert('Ada')]), run([insert('Bob')])])
        await holder.commit([])
        await run([insert('Cy')]).catch(() => {})
      }))
    })
    t.same(await names(), ['Eve'])
    await database.transact(async ({ run }) => { await run([insert('Dora')]) })
    t.same(await names(), ['Eve', 'Dora'])
  })

  t.test('a write beside an open transaction does not end with it', async (t) => {
    const { database, names } = await open(t, inThread)
    let beside: Promise<unknown> | undefined
    await t.rejects(database.transact(async ({ run }) => {
      await run([insert('Ada')])
      beside = Promise.all([
        database.prisma.account.create({ data: { name: 'Bob', createdAt: CREATED_AT } }), database.prisma.$executeRaw`DELETE FROM accounts WHERE name = 'Cy'`
      ])
      await sleep(50)
      throw new Error('changed its mind')
    }))
    await beside
    t.same(await names(), ['Bob'])
  })
}
