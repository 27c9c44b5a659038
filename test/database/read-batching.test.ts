import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import type { Database } from '../../src/database/database.ts'
import { openDatabase } from '../../src/database/open-database.ts'
import { createRead } from '../../src/database/read-batching.ts'
import { OtherWork } from '../../src/database/reads/other-work.ts'
import type { Query, Read } from '../../src/database/reads/query.ts'
import { pageQuery } from '../../src/database/sql/keyset-pagination.ts'
import { queryRows, type Connection, type OwnStatement } from '../../src/database/statements.ts'
import { petList } from '../../src/pets/queries.ts'
import { database, freshDatabase } from '../support/database.ts'

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
  /** The inputs of the statements that ran, as JSON, or as the first parameter. */
  ran: string[]
  /** The inputs of the statements of each message to a server. */
  messages: string[][]
}

async function open (t: Test, { queueLimit = 1_000, timeout = 5_000 } = {}): Promise<Opened> {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout })
  t.teardown(opened.close)
  const ran: string[] = []
  const messages: string[][] = []
  const record = (statements: readonly OwnStatement[]): void => {
    const inputs = statements.map(({ values }) => String(values[0]))
    ran.push(...inputs)
    messages.push(inputs)
  }
  const { reads: { runOwn, runTogether, runEach }, readRow } = opened
  const reads: Connection = {
    ...opened.reads,
    runTogether: runTogether && (async (statements) => {
      record(statements)
      return await runTogether(statements)
    }),
    runEach: runEach && ((statements) => {
      record(statements)
      return runEach(statements)
    }),
    runOwn: runOwn && ((sql, values) => {
      ran.push(String(values[0]))
      return runOwn(sql, values)
    })
  }
  const counted = {
    ...opened,
    reads,
    ...(readRow && {
      readRow: (sql: string, values: readonly unknown[]) => {
        ran.push(String(values[0]))
        return readRow(sql, values)
      }
    })
  }
  return { read: createRead(counted, { queueLimit, timeout }), ran, messages }
}

/** Returns a connection to a server, on SQLite as well, on which each statement waits for `run`. */
function asServer ({ reads }: Database, run: (statement: () => Promise<object[]>) => Promise<object[]>): Connection {
  return {
    ...reads,
    runOwn: undefined,
    runEach: undefined,
    runTogether: async (statements) => await Promise.all(statements.map(async ({ sql, values }) =>
      await run(async () => await queryRows<object>(reads, sql, values))))
  }
}

t.test('reads of one turn of the event loop share a statement, and each gets its own result', async (t) => {
  const { read, ran } = await open(t)
  const query = successor()
  for (const statements of [2, 1]) {
    ran.length = 0
    const rows = await Promise.all([5, 3, 3, 9].map(async (n) => await read(query, { n })))
    t.same(rows.map((row) => Number(row?.next)), [6, 4, 4, 10])
    t.equal(ran.length, statements, statements === 2 ? 'the first runs at once' : 'in a crowd all wait for each other')
  }
})

t.test('a read that is alone runs in its own turn of the event loop, also after a crowd', async (t) => {
  const { read, ran } = await open(t)
  const query = successor()
  await Promise.all([1, 2, 3].map(async (n) => await read(query, { n })))
  await read(query, { n: 4 })
  await nextTurn()
  ran.length = 0
  const row = read(query, { n: 5 })
  t.equal(ran.length, 1)
  t.equal(Number((await row)?.next), 6)
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
  t.equal(ran.length, 4)
})

t.test('on PostgreSQL, a full statement of a costly query starts before the turn of the event loop ends', async (t) => {
  const { read, ran } = await open(t)
  const query = { ...successor(), isCostly: true }
  const isServer = database === 'postgresql'
  const reads = Array.from({ length: 40 }, async (_, n) => await read(query, { n }))
  t.equal(ran.length, isServer ? 3 : 1, 'the first read alone, and two times 16')
  const rows = await Promise.all(reads)
  t.same(rows.map((row) => Number(row?.next)), Array.from({ length: 40 }, (_, n) => n + 1))
  t.equal(ran.length, isServer ? 4 : 2)
})

t.test('PostgreSQL gets the statements of a turn in one message, with at most one costly one, at its end', {
  skip: database !== 'postgresql' && 'SQLite has no messages'
}, async (t) => {
  const { read, messages } = await open(t)
  const [cheap, alsoCheap] = [successor(), successor()]
  const [costly, alsoCostly] = [successor(), successor()].map((query) => ({ ...query, isCostly: true }))
  await Promise.all([cheap, cheap].map(async (query) => await read(query, { n: 0 })))
  messages.length = 0
  const queries = [costly!, cheap, alsoCostly!, alsoCheap]
  const rows = await Promise.all(queries.map(async (query, n) => await read(query, { n })))
  t.same(rows.map((row) => Number(row?.next)), [1, 2, 3, 4])
  t.same(messages, [['1', '3', '0'], ['2']])
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

t.test('a statement of a costly query takes at least a quarter of the reads that wait', async (t) => {
  const { read, ran } = await open(t)
  const query = { ...successor(), isCostly: true }
  const rows = await Promise.all(Array.from({ length: 300 }, async (_, n) => await read(query, { n })))
  t.same(rows.map((row) => Number(row?.next)), Array.from({ length: 300 }, (_, n) => n + 1))
  t.ok(ran.length < 15, `${ran.length} statements`)
})

t.test('a page of ten or more records is costly, one of fewer is not', async (t) => {
  const isCostly = (limit: number): unknown =>
    pageQuery(petList, { limit, descending: false, after: undefined, filters: {} }, 1)[0].isCostly
  t.same([1, 9, 10, 100].map(isCostly), [false, false, true, true])
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

t.test('a turn of the event loop passes between two statements with large rows', {
  skip: database !== 'sqlite' && 'PostgreSQL runs statements in other processes'
}, async (t) => {
  const { read } = await open(t)
  const query: Query<{ n: number }, object> = { ...successor(), maxRowBytes: 10_000_000 }
  let turns = 0
  let isCounting = true
  const count = (): void => {
    turns++
    if (isCounting) setImmediate(count)
  }
  count()
  const at: number[] = []
  await Promise.all([1, 2, 3].map(async (n) => {
    await read(query, { n })
    at.push(turns)
  }))
  isCounting = false
  t.ok(at[0]! < at[1]! && at[1]! < at[2]!, `the answers came after ${at.join(', ')} turns`)
})

t.test('beside writes, statements with large rows run one at a time, with pauses of twice their time', async (t) => {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout: 5_000 })
  t.teardown(opened.close)
  const statements: Array<{ began: number, ended: number }> = []
  let inFlight = 0
  let maxInFlight = 0
  const reads = asServer(opened, async (statement) => {
    const began = performance.now()
    maxInFlight = Math.max(maxInFlight, ++inFlight)
    await sleep(20)
    const rows = await statement()
    inFlight--
    statements.push({ began, ended: performance.now() })
    return rows
  })
  const query: Query<{ n: number }, object> = { ...successor(), maxRowBytes: 10_000_000 }
  const runThree = async (otherWork: OtherWork): Promise<void> => {
    statements.length = maxInFlight = 0
    const read = createRead({ ...opened, reads, readers: 3 }, { queueLimit: 10, timeout: 5_000, otherWork })
    await Promise.all([1, 2, 3].map(async (n) => await read(query, { n })))
  }

  const otherWork = new OtherWork()
  t.notOk(otherWork.hasWrites())
  otherWork.writeSeen()
  t.ok(otherWork.hasWrites())
  // On a busy machine, the statements can take longer than a write counts.
  otherWork.hasWrites = () => true
  await runThree(otherWork)
  t.equal(maxInFlight, 1)
  for (const [i, { began, ended }] of statements.slice(0, -1).entries()) {
    const ms = ended - began
    const pause = statements[i + 1]!.began - ended
    // A timer can fire a millisecond early.
    t.ok(pause >= Math.min(2 * ms, 1_000) - 2, `a pause of ${pause.toFixed(1)} ms after ${ms.toFixed(1)} ms`)
  }

  await runThree(new OtherWork())
  t.equal(maxInFlight, 2, 'without writes, two run at once')
})

t.test('the time of a statement is measured, also where it runs in this thread', async (t) => {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout: 5_000 })
  t.teardown(opened.close)
  const times: number[] = []
  const instrumentation = {
    queue: () => {},
    batchStarted: () => {},
    batchFinished: (_kind: string, _size: number, ms: number) => { times.push(ms) }
  } as never
  const read = createRead(opened, { queueLimit: 10, timeout: 5_000, instrumentation })
  const slow: Query<{ n: number }, object> = {
    maxRowBytes: 10_000_000,
    sql: (dialect) => `
      WITH RECURSIVE numbers (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM numbers WHERE x < 200000)
      SELECT i.ord, (SELECT count(*) FROM numbers) AS numbers
      FROM ${dialect.jsonRows('i', { ord: 'ordinality', n: 'bigint' })}`
  }
  const began = performance.now()
  await read(slow, { n: 1 })
  const waited = performance.now() - began
  t.ok(times[0]! >= waited / 2, `${times[0]} of ${waited} ms`)
})

t.test('another process writes if it has announced changes a moment ago', async (t) => {
  const otherWork = new OtherWork()
  t.notOk(otherWork.hasPeer())
  otherWork.writeSeen()
  t.notOk(otherWork.hasPeer(), 'a write of this process')
  otherWork.peerWriteSeen()
  t.ok(otherWork.hasPeer())
  await sleep(60)
  t.notOk(otherWork.hasPeer())
})

t.test('a large read that has waited longer than the time-out is refused without a statement', async (t) => {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout: 5_000 })
  t.teardown(opened.close)
  let statements = 0
  const reads = asServer(opened, async (statement) => {
    statements++
    await sleep(100)
    return await statement()
  })
  const read = createRead({ ...opened, reads, readers: 1 }, { queueLimit: 8, timeout: 250 })
  const query: Query<{ n: number }, object> = { ...successor(), maxRowBytes: 10_000_000 }
  for (let round = 0; round < 2; round++) {
    statements = 0
    const settled = await Promise.allSettled(Array.from({ length: 8 }, async (_, n) => await read(query, { n })))
    const reasons = settled.flatMap((result) => result.status === 'rejected' ? [result.reason.code] : [])
    t.ok(reasons.length >= 4, `${reasons.length} are refused`)
    t.same(new Set(reasons), new Set(['DATABASE_UNAVAILABLE']), 'also in the second round: each frees its place')
    // Three fit in the time-out. A timer can fire a millisecond early, and start another.
    t.ok(statements <= 4, `${statements} statements`)
  }
})

t.test('the text of a query is built once for a read that is alone, and once for several', async (t) => {
  const { read } = await open(t)
  const built: string[] = []
  const query = successor(built)
  for (let i = 0; i < 3; i++) {
    await read(query, { n: 1 })
    await Promise.all([read(query, { n: 2 }), read(query, { n: 3 })])
    await nextTurn()
  }
  t.equal(built.length, database === 'sqlite' ? 2 : 1)
})

t.test('reads beyond the queue limit are refused, and later reads succeed', async (t) => {
  const { read } = await open(t, { queueLimit: 10 })
  const query = successor()
  const settled = await Promise.allSettled(Array.from({ length: 15 }, async (_, n) => await read(query, { n })))
  // On SQLite, the first does not wait.
  const fulfilled = database === 'sqlite' ? 11 : 10
  t.equal(settled.filter(({ status }) => status === 'fulfilled').length, fulfilled)
  const reasons = settled.flatMap((result) => result.status === 'rejected' ? [result.reason.code] : [])
  t.same(reasons, Array(15 - fulfilled).fill('OVERLOADED'))
  t.equal(Number((await read(query, { n: 1 }))?.next), 2)
})

t.test('polls of the service are never refused', async (t) => {
  const { read } = await open(t, { queueLimit: 3 })
  const query = successor()
  const others = Array.from({ length: 5 }, async (_, n) => await read(query, { n }).catch(() => {}))
  const poll = read({ ...successor(), isPoll: true }, { n: 1 })
  await t.rejects(read(query, { n: 1 }), { code: 'OVERLOADED' }, 'another read at that moment is refused')
  t.equal(Number((await poll)?.next), 2)
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
    const settled = await Promise.allSettled([read(broken, {}), read(broken, {})])
    t.ok(settled.every((result) => result.status === 'rejected' && result.reason.code !== 'OVERLOADED'))
  }
  t.equal(Number((await read(successor(), { n: 1 }))?.next), 2)
})

t.test('a read without an answer of the database ends after the time-out, and frees its place', async (t) => {
  const opened = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout: 5_000 })
  t.teardown(opened.close)
  let isSilent = true
  const reads = asServer(opened, async (statement) => await (isSilent ? new Promise<never>(() => {}) : statement()))
  // As a server: SQLite reads a row in this thread, and is never silent.
  const { readRow: _inThread, ...server } = opened
  const read = createRead({ ...server, reads }, { queueLimit: 2, timeout: 300 })
  const query = successor()
  const began = performance.now()
  const reasons = await Promise.all([1, 2].map(async (n) => await Promise.race([
    read(query, { n }).catch(({ code }: { code: string }) => code), sleep(20_000, 'it waits', { ref: false })
  ])))
  const waited = performance.now() - began
  t.same(reasons, ['DATABASE_UNAVAILABLE', 'DATABASE_UNAVAILABLE'])
  t.ok(waited >= 290, `after ${waited.toFixed(0)} ms`)
  isSilent = false
  t.equal(Number((await read(query, { n: 1 }))?.next), 2)
})
