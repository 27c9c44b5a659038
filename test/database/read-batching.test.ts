import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import type { Database } from '../../src/database/database.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { createReads } from '../../src/database/read-batching.ts'
import type { Query, Read } from '../../src/database/reads/query.ts'
import { queryRows, type OwnStatement, type Run } from '../../src/database/statements.ts'
import { database, freshDatabase } from '../support/database.ts'
import { eventually } from '../support/receiver.ts'

/** Returns n + 1, and no row for a negative n. It counts its statements by their text. */
function successor (statements: string[] = []): Query<{ n: number }, { next: bigint | number }> {
  return {
    sql: (dialect) => {
      statements.push('built')
      return `SELECT i.ord, i.n + 1 AS next FROM ${dialect.jsonRows('i', { ord: 'ordinality', n: 'bigint' })} WHERE i.n >= 0`
    }
  }
}

interface Opened {
  read: Read
  /** The inputs of the statements that ran, as JSON. */
  ran: string[]
}

async function open (t: Test, { queueLimit = 1_000, timeout = 60_000 } = {}): Promise<Opened> {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout })
  t.teardown(opened.close)
  const ran: string[] = []
  const record = (statements: readonly OwnStatement[]): void => {
    ran.push(...statements.map(({ values }) => String(values[0])))
  }
  const { read, readRow } = opened
  const counted = {
    ...opened,
    read: async (statements: readonly OwnStatement[]) => {
      record(statements)
      return await read(statements)
    },
    ...(readRow && {
      readRow: (sql: string, values: readonly unknown[]) => {
        ran.push(String(values[0]))
        return readRow(sql, values)
      }
    })
  }
  return { read: createReads(counted, { queueLimit, timeout }).read, ran }
}

/** Returns what runs the reads of a server, on SQLite as well, whose statements wait for `run`. */
function asServer ({ read }: Database, run: (statement: () => Promise<object[]>) => Promise<object[]>): Run {
  return async (statements) => await Promise.all(statements.map(async ({ sql, values }) =>
    await run(async () => await queryRows<object>(read, sql, values))))
}

t.test('reads that arrive together share statements, and each gets its own result', async (t) => {
  const { read, ran } = await open(t)
  const query = successor()
  for (let round = 0; round < 2; round++) {
    ran.length = 0
    const rows = await Promise.all([5, 3, 3, 9].map(async (n) => await read(query, { n })))
    t.same(rows.map((row) => Number(row?.next)), [6, 4, 4, 10])
    t.ok(ran.length < 4, `${ran.length} statements`)
  }
})

t.test('a read without a row is undefined, and the other reads of its batch are not', async (t) => {
  const { read } = await open(t)
  const query = successor()
  const rows = await Promise.all([1, -1, 2].map(async (n) => await read(query, { n })))
  t.same(rows.map((row) => row && Number(row.next)), [2, undefined, 3])
})

t.test('many reads are split into statements of bounded size', async (t) => {
  const { read, ran } = await open(t)
  const query = successor()
  const rows = await Promise.all(Array.from({ length: 300 }, async (_, n) => await read(query, { n })))
  t.same(rows.map((row) => Number(row?.next)), Array.from({ length: 300 }, (_, n) => n + 1))
  const sizes = ran.map((inputs) => (JSON.parse(inputs) as unknown[]).length)
  t.ok(Math.max(...sizes) <= 128, `statements of ${sizes.join(', ')} reads`)
})

t.test('a query that fails does not fail the other reads of its turn', async (t) => {
  const { read } = await open(t)
  const broken: Query<object, object> = { sql: () => 'SELECT nothing FROM nowhere' }
  for (let round = 0; round < 2; round++) {
    const settled = await Promise.allSettled([
      read(successor(), { n: 1 }), read(broken, {}), read(successor(), { n: 2 }), read(broken, {}),
      read({ ...successor(), isCostly: true }, { n: 3 })
    ])
    const values = settled.map((result) =>
      result.status === 'fulfilled' ? Number((result.value as { next: number }).next) : 'rejected')
    t.same(values, [2, 'rejected', 3, 'rejected', 4])
  }
})

t.test('on PostgreSQL, a statement of a costly query starts with few inputs', async (t) => {
  const { read, ran } = await open(t)
  const query = { ...successor(), isCostly: true }
  const rows = await Promise.all(Array.from({ length: 300 }, async (_, n) => await read(query, { n })))
  t.same(rows.map((row) => Number(row?.next)), Array.from({ length: 300 }, (_, n) => n + 1))
  const sizes = ran.map((inputs) => (JSON.parse(inputs) as unknown[]).length)
  t.equal(Math.max(...sizes), database === 'postgresql' ? 16 : 128)
})

t.test('reads of large rows have small statements, and accounts take turns', async (t) => {
  const { read, ran } = await open(t)
  const query: Query<{ account: number, n: number }, { n: bigint | number }> = {
    maxRowBytes: 1_000_000,
    sql: (dialect) =>
      `SELECT i.ord, i.n FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', n: 'bigint' })}`
  }
  const inputs = [1, 1, 1, 1, 2, 3].map((account, n) => ({ account, n }))
  const rows = await Promise.all(inputs.map(async (input) => await read(query, input)))
  t.same(rows.map((row) => Number(row?.n)), [0, 1, 2, 3, 4, 5])
  t.same(
    ran.map((inputs) => (JSON.parse(inputs) as Array<{ account: number }>).map(({ account }) => account)),
    [[1, 2], [3, 1], [1, 1]]
  )
})

t.test('a small read overtakes large ones that wait', {
  skip: database !== 'sqlite' && 'PostgreSQL runs statements in other processes'
}, async (t) => {
  const { read } = await open(t)
  const large: Query<{ n: number }, object> = { ...successor(), maxRowBytes: 10_000_000 }
  const small = successor()
  const order: string[] = []
  const note = async (name: string, answer: Promise<unknown>): Promise<void> => {
    await answer
    order.push(name)
  }
  await note('small', read(small, { n: 0 }))
  await Promise.all([
    ...Array.from({ length: 50 }, async (_, n) => { await note('large', read(large, { n })) }),
    note('small', read(small, { n: 1 }))
  ])
  t.ok(order.lastIndexOf('small') < 50, `the small read is answer ${order.lastIndexOf('small')} of 50`)
})

t.test('statements with large rows run one at a time', async (t) => {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout: 60_000 })
  t.teardown(opened.close)
  let inFlight = 0
  let maxInFlight = 0
  const slow = asServer(opened, async (statement) => {
    maxInFlight = Math.max(maxInFlight, ++inFlight)
    await sleep(20)
    const rows = await statement()
    inFlight--
    return rows
  })
  const query: Query<{ n: number }, { next: bigint | number }> = { ...successor(), maxRowBytes: 10_000_000 }
  const { read } = createReads({ ...opened, read: slow }, { queueLimit: 10, timeout: 60_000 })
  const rows = await Promise.all([1, 2, 3].map(async (n) => await read(query, { n })))
  t.same(rows.map((row) => Number(row!.next)), [2, 3, 4])
  t.equal(maxInFlight, 1)
})

t.test('the time of a statement is measured, also where it runs in this thread', async (t) => {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout: 60_000 })
  t.teardown(opened.close)
  const times: number[] = []
  const instrumentation = {
    queue: () => {},
    batchStarted: () => {},
    batchFinished: (_kind: string, _size: number, ms: number) => { times.push(ms) }
  } as never
  const { read } = createReads(opened, { queueLimit: 10, timeout: 60_000, instrumentation })
  const slow: Query<{ n: number }, object> = {
    maxRowBytes: 10_000_000,
    sql: (dialect) => `
      WITH RECURSIVE numbers (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM numbers WHERE x < 200000)
      SELECT i.ord, (SELECT count(*) FROM numbers) AS numbers
      FROM ${dialect.jsonRows('i', { ord: 'ordinality', n: 'bigint' })}`
  }
  await read(slow, { n: 1 })
  // No machine counts so many rows in less time.
  t.ok(times[0]! >= 1, `${times[0]} ms`)
})

t.test('a large read that has waited longer than the time-out is refused without a statement', async (t) => {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout: 60_000 })
  t.teardown(opened.close)
  let statements = 0
  const slow = asServer(opened, async (statement) => {
    statements++
    await sleep(100)
    return await statement()
  })
  const { read } = createReads({ ...opened, read: slow }, { queueLimit: 8, timeout: 250 })
  const query = { ...successor(), maxRowBytes: 10_000_000 } as Query<{ account: number, n: number }, object>
  for (let round = 0; round < 2; round++) {
    statements = 0
    const settled = await Promise.allSettled(
      Array.from({ length: 8 }, async (_, n) => await read(query, { account: n, n })))
    const reasons = settled.flatMap((result) => result.status === 'rejected' ? [result.reason.code] : [])
    t.ok(reasons.length >= 4, `${reasons.length} are refused`)
    t.same(new Set(reasons), new Set(['DATABASE_UNAVAILABLE']), 'also in the second round: each frees its place')
    // Three fit in the time-out. A timer can fire a millisecond early, and start another.
    t.ok(statements <= 4, `${statements} statements`)
  }
})

t.test('the accounts of large reads are charged for the time of their statement', async (t) => {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout: 60_000 })
  t.teardown(opened.close)
  const slow = asServer(opened, async (statement) => {
    await sleep(100)
    return await statement()
  })
  const charged: Array<[accounts: readonly number[], ms: number]> = []
  const charge = (accounts: readonly number[], began: number): void => {
    charged.push([accounts, performance.now() - began])
  }
  const { read } = createReads({ ...opened, read: slow }, { queueLimit: 8, timeout: 60_000, charge })
  const query = successor() as Query<{ account: number, n: number }, object>
  const large = { ...query, maxRowBytes: 100 }
  await Promise.all([
    read(large, { account: 1, n: 1 }), read(large, { account: 2, n: 2 }), read(query, { account: 3, n: 3 })
  ])
  t.same(charged.map(([accounts]) => accounts), [[1, 2]])
  // A timer can fire a millisecond early.
  t.ok(charged.every(([, ms]) => ms >= 99), JSON.stringify(charged))
})

t.test('the text of a query is built once', async (t) => {
  const { read } = await open(t)
  const built: string[] = []
  const query = successor(built)
  for (let i = 0; i < 3; i++) {
    await read(query, { n: 1 })
    await Promise.all([read(query, { n: 2 }), read(query, { n: 3 })])
  }
  t.equal(built.length, 1)
})

t.test('one account has a quarter of the queue, and one with nothing waiting is never refused', async (t) => {
  const { read } = await open(t, { queueLimit: 8 })
  const query = successor() as Query<{ account: number, n: number }, { next: unknown }>
  const fulfilled = async (accounts: number[]): Promise<number[]> => {
    // On SQLite, the first does not wait.
    const first = read(successor(), { n: 0 })
    const settled = await Promise.allSettled(accounts.map(async (account, n) => await read(query, { account, n })))
    const reasons = settled.flatMap((result) => result.status === 'rejected' ? [result.reason.code] : [])
    t.same(new Set(reasons), new Set(['OVERLOADED']))
    await first
    return accounts.filter((_, i) => settled[i]!.status === 'fulfilled')
  }
  t.same(await fulfilled([1, 1, 1, 2, 1]), [1, 1, 2])
  t.same(await fulfilled([1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 1]), [1, 1, 2, 2, 3, 3, 4, 4, 5, 6], 'the queue is full')
  t.equal(Number((await read(query, { account: 1, n: 1 }))?.next), 2, 'and later reads succeed')
})

t.test('reads of no account are never refused, and take no room', async (t) => {
  const { read } = await open(t, { queueLimit: 3 })
  const query = successor() as Query<{ account?: number, n: number }, { next: unknown }>
  const others = Array.from({ length: 5 }, async (_, n) => await read(query, { account: 1, n }).catch(() => {}))
  const polls = Array.from({ length: 5 }, async () => await read(query, { n: 1 }))
  await t.rejects(read(query, { account: 1, n: 1 }), { code: 'OVERLOADED' }, 'another read at that moment is refused')
  t.same((await Promise.all(polls)).map((row) => Number(row?.next)), [2, 2, 2, 2, 2])
  await Promise.all(others)
})

t.test('a query that fails does not affect the next one', async (t) => {
  const { read } = await open(t)
  const broken: Query<object, object> = { sql: () => 'SELECT nothing FROM nowhere' }
  const settled = await Promise.allSettled([read(broken, {}), read(broken, {})])
  t.same(settled.map(({ status }) => status), ['rejected', 'rejected'])
  t.equal(Number((await read(successor(), { n: 1 }))?.next), 2)
})

t.test('a read that fails frees its place in the queue', async (t) => {
  const { read } = await open(t, { queueLimit: 2 })
  const broken: Query<object, object> = { sql: () => 'SELECT nothing FROM nowhere' }
  for (let round = 0; round < 3; round++) {
    const settled = await Promise.allSettled([read(broken, { account: 1 }), read(broken, { account: 2 })])
    t.ok(settled.every((result) => result.status === 'rejected' && result.reason.code !== 'OVERLOADED'))
  }
  t.equal(Number((await read(successor(), { n: 1 }))?.next), 2)
})

t.test('a read without an answer of the database ends after the time-out, and frees its place', async (t) => {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout: 60_000 })
  t.teardown(opened.close)
  let isSilent = true
  const slow = asServer(opened, async (statement) => await (isSilent ? new Promise<never>(() => {}) : statement()))
  // As a server: SQLite reads a row in this thread, and is never silent.
  const { readRow: _inThread, ...server } = opened
  const { read } = createReads({ ...server, read: slow }, { queueLimit: 2, timeout: 1_000 })
  const query = successor() as Query<{ account?: number, n: number }, { next: unknown }>
  const began = performance.now()
  const reasons = await Promise.all([1, 2].map(async (account) => await Promise.race([
    read(query, { account, n: 1 }).catch(({ code }: { code: string }) => code),
    sleep(60_000, 'it waits', { ref: false })
  ])))
  const waited = performance.now() - began
  t.same(reasons, ['DATABASE_UNAVAILABLE', 'DATABASE_UNAVAILABLE'])
  t.ok(waited >= 990, `after ${waited.toFixed(0)} ms`)
  isSilent = false
  await eventually(async () => await read(query, { n: 1 }).then((row) => Number(row?.next) === 2, () => false))
})
