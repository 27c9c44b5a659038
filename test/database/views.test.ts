import { EventEmitter, once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import type { Database } from '../../src/database/database.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { createReads } from '../../src/database/read-batching.ts'
import type { Query, ReadView } from '../../src/database/reads/query.ts'
import { freshDatabase } from '../support/database.ts'

const countAccounts: Query<object, { count: bigint | number }> = {
  sql: (dialect) => `
    SELECT i.ord, (SELECT count(*) FROM accounts) AS count FROM ${dialect.jsonRows('i', { ord: 'ordinality' })}`
}

async function open (
  t: Test, { queueLimit = 1_000, timeout = 60_000 } = {}
): Promise<{ opened: Database, readView: ReadView }> {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout: 60_000 })
  t.teardown(opened.close)
  return { opened, readView: createReads(opened, { queueLimit, timeout }).readView }
}

async function addAccount ({ prisma }: Database): Promise<void> {
  await prisma.account.create({ data: { name: 'A store', createdAt: new Date() } })
}

t.test('the reads of a view see one moment', async (t) => {
  const { opened, readView } = await open(t)
  const count = async (): Promise<number> =>
    await readView(1, async (read) => Number((await read(countAccounts, {}))!.count))
  await addAccount(opened)
  await readView(1, async (read) => {
    t.equal(Number((await read(countAccounts, {}))!.count), 1)
    await addAccount(opened)
    t.equal(Number((await read(countAccounts, {}))!.count), 1, 'also after a write')
  })
  t.equal(await count(), 2, 'the next view sees it')
  await t.rejects(readView(1, async () => { throw new Error('the caller failed') }), /the caller failed/)
  const failing: Query<object, object> = { sql: () => 'SELECT 1 AS ord FROM nowhere' }
  await t.rejects(readView(1, async (read) => await read(failing, {})), /nowhere/)
  t.equal(await count(), 2, 'views go on after a failure')
})

t.test('accounts take turns, one view at a time', async (t) => {
  const { readView } = await open(t)
  const order: number[] = []
  let isOpen = false
  const view = async (account: number): Promise<void> => {
    await readView(account, async (read) => {
      t.notOk(isOpen)
      isOpen = true
      await read(countAccounts, {})
      order.push(account)
      isOpen = false
    })
  }
  await Promise.all([view(1), view(1), view(1), view(2), view(2), view(3)])
  t.same(order, [1, 2, 3, 1, 2, 1])
})

t.test('an account can fill a quarter of the queue, and a caller that waited too long is refused', async (t) => {
  const { readView } = await open(t, { queueLimit: 8, timeout: 50 })
  const ending = new AbortController()
  const begun = new EventEmitter()
  const first = readView(1, async () => {
    const ended = once(ending.signal, 'abort')
    begun.emit('begun')
    await ended
  })
  await once(begun, 'begun')
  const late = readView(1, async () => 'late')
  const other = readView(2, async () => 'other')
  await t.rejects(readView(1, async () => 'third'), { code: 'OVERLOADED' })
  const began = performance.now()
  while (performance.now() - began < 60) await nextTurn()
  ending.abort()
  await first
  await t.rejects(late, { code: 'DATABASE_UNAVAILABLE' })
  await t.rejects(other, { code: 'DATABASE_UNAVAILABLE' })
  t.equal(await readView(1, async () => 'next'), 'next')
})
