// Only on SQLite: tests the connections to SQLite.

import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import type { Test } from 'tap'
import type { Database } from '../../../src/database/database.ts'
import { classifyError } from '../../../src/database/error-classification.ts'
import type { Command } from '../../../src/database/group-commit/command.ts'
import { Committer } from '../../../src/database/group-commit/committer.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import { fileOf } from '../../../src/database/sqlite/database-file.ts'
import { BEGIN_IMMEDIATE, reserve } from '../../../src/database/sqlite/transactions.ts'
import { WriterThread } from '../../../src/database/sqlite/writer-thread.ts'
import type { Run } from '../../../src/database/statements.ts'
import { createTransact, type Transact } from '../../../src/database/transact.ts'
import { Turns } from '../../../src/database/turns.ts'
import { database, freshDatabase } from '../../support/database.ts'
import { openWithWriterThread } from '../../support/writer-thread.ts'
import { NO_EVENTS } from '../../support/no-events.ts'

const skip = database === 'postgresql' && 'it tests SQLite'
const TIMEOUT_MS = 60_000
const INSERT = "INSERT INTO accounts (name, created_at) VALUES (?, '2026-11-21T10:00:00.000Z')"

interface Opened {
  thread: WriterThread
  transact: Transact
  onlooker: Database
  names: () => Promise<string[]>
}

/** Starts a writer thread, and opens a connection that sees what it committed. */
async function open (t: Test, { lockTimeout = TIMEOUT_MS, timeout = 60_000 } = {}): Promise<Opened> {
  const url = await freshDatabase(t)
  const thread = new WriterThread({ url, lockTimeout })
  const onlooker = await openDatabase({ url, pool: 1, timeout: TIMEOUT_MS })
  t.teardown(async () => { await Promise.all([thread.dispose(), onlooker.close()]) })
  const run = await untilStarted(thread)
  const turns = new Turns()
  const transact = createTransact(async () => await reserve(turns, () => run), BEGIN_IMMEDIATE, timeout)
  const names = async (): Promise<string[]> => (await onlooker.prisma.account.findMany()).map(({ name }) => name)
  return { thread, transact, onlooker, names }
}

async function untilStarted (thread: WriterThread): Promise<Run> {
  for (;;) {
    const run = thread.runner()
    if (run !== undefined) return run
    await sleep(5)
  }
}

t.test('statements of one message run in order, and the last can commit', { skip }, async (t) => {
  const { transact, names } = await open(t)
  const rows = await transact(async (transaction) => {
    await transaction.run([{ sql: INSERT, values: ['Ada'] }, { sql: INSERT, values: ['Bob'] }])
    t.same(await names(), [])
    return await transaction.commit([{ sql: 'SELECT name FROM accounts ORDER BY name', values: [] }])
  })
  t.same(rows[0], [{ name: 'Ada' }, { name: 'Bob' }])
  t.same(await names(), ['Ada', 'Bob'])
})

t.test('an error has the code and the kind that it has in the main thread', { skip }, async (t) => {
  const { transact, names } = await open(t)
  const error: unknown = await transact(async (transaction) => {
    await transaction.run([{ sql: 'SELECT missing FROM nowhere', values: [] }])
  }).catch((error: unknown) => error)
  t.match(error, { code: 'ERR_SQLITE_ERROR', message: /nowhere/ })
  t.equal(classifyError(error), 'statement error')
  t.same(await names(), [])
})

t.test('a transaction waits in the thread for the lock of another process', { skip }, async (t) => {
  const { transact, onlooker, names } = await open(t)
  let release = (): void => {}
  const released = new Promise<void>((resolve) => { release = resolve })
  const other = onlooker.transact(async (transaction) => {
    await transaction.run([{ sql: INSERT, values: ['Ada'] }])
    await released
  })
  const own = transact(async (transaction) => {
    await transaction.run([{ sql: INSERT, values: ['Bob'] }])
  })
  await sleep(50)
  release()
  await Promise.all([other, own])
  t.same(await names(), ['Ada', 'Bob'])
})

t.test('a lock that another process keeps fails the transaction as unavailable', { skip }, async (t) => {
  const { transact, onlooker, names } = await open(t, { lockTimeout: 100 })
  await onlooker.transact(async ({ run }) => {
    await run([{ sql: INSERT, values: ['Ada'] }])
    const error: unknown = await transact(async (transaction) =>
      await transaction.run([{ sql: INSERT, values: ['Bob'] }])).catch((error: unknown) => error)
    t.equal(classifyError(error), 'unavailable', String(error))
  })
  await transact(async (transaction) => { await transaction.run([{ sql: INSERT, values: ['Bea'] }]) })
  t.same(await names(), ['Ada', 'Bea'])
})

t.test('a transaction whose thread ends is rolled back and fails at once', { skip }, async (t) => {
  const { thread, transact, names } = await open(t)
  const failed = transact(async (transaction) => {
    await transaction.run([{ sql: INSERT, values: ['Ada'] }])
    const long = transaction.run([{ sql: LONG, values: [] }])
    // The thread ends before it reads this message.
    await Promise.all([long, thread.dispose(), transaction.run([{ sql: INSERT, values: ['Bob'] }])])
  }).catch((error: unknown) => classifyError(error))
  t.equal(await Promise.race([failed, sleep(TIMEOUT_MS, 'it waits', { ref: false })]), 'unavailable')
  t.same(await names(), [])
})

t.test('a transaction fails after its time-out, also if the thread has not ended a statement', { skip }, async (t) => {
  const { transact, names } = await open(t, { timeout: 100 })
  let statement: Promise<void> | undefined
  let hasEnded = false
  const failed = transact(async (transaction) => {
    await transaction.run([{ sql: INSERT, values: ['Ada'] }])
    statement = transaction.run([{ sql: LONG, values: [] }]).then(() => { hasEnded = true })
    await statement
  }).catch((error: unknown) => classifyError(error))
  t.equal(await failed, 'unavailable')
  t.notOk(hasEnded)
  await statement
  await transact(async (transaction) => { await transaction.run([{ sql: INSERT, values: ['Bob'] }]) })
  t.same(await names(), ['Bob'])
})

/** Runs for about a second. */
const LONG = `
  WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT count(*) AS count FROM n`

t.test('a transaction waits for the one before it', { skip }, async (t) => {
  const { transact, names } = await open(t)
  const add = async (name: string, ms: number): Promise<void> => {
    await transact(async (transaction) => {
      await transaction.run([{ sql: INSERT, values: [name] }])
      await sleep(ms)
    })
  }
  await Promise.all([add('Ada', 50), add('Bob', 0)])
  t.same(await names(), ['Ada', 'Bob'])
})

t.test('a transaction whose last statement fails is rolled back, and the next one runs', { skip }, async (t) => {
  const { transact, names } = await open(t)
  await t.rejects(transact(async (transaction) => {
    const broken = { sql: 'SELECT missing FROM nowhere', values: [] }
    await transaction.commit([{ sql: INSERT, values: ['Ada'] }, broken])
  }), { code: 'ERR_SQLITE_ERROR' })
  const next = transact(async (transaction) => {
    await transaction.commit([{ sql: INSERT, values: ['Bob'] }])
    return 'it runs'
  })
  t.equal(await Promise.race([next, sleep(TIMEOUT_MS, 'it waits', { ref: false })]), 'it runs')
  t.same(await names(), ['Bob'])
})

t.test('a COMMIT that fails reports its reason, and changes nothing', { skip }, async (t) => {
  const { transact, names } = await open(t)
  const error: unknown = await transact(async (transaction) => {
    await transaction.run([
      { sql: INSERT, values: ['Ada'] },
      { sql: 'PRAGMA defer_foreign_keys = ON', values: [] },
      { sql: "INSERT INTO categories (account_id, name) VALUES (7, 'Dogs')", values: [] }
    ])
  }).catch((error: unknown) => error)
  t.match(error, { message: 'FOREIGN KEY constraint failed' })
  t.same(await names(), [])
})

t.test('a thread that cannot open the database is started again after a pause', { skip }, async (t) => {
  const folder = join(dirname(fileOf(await freshDatabase(t))), 'created later')
  const options = { url: `file:${join(folder, 'petstore.db')}`, lockTimeout: TIMEOUT_MS }
  const workers = { started: 0, ended: 0 }
  const observe = (worker: Worker): void => {
    workers.started++
    worker.once('exit', () => { workers.ended++ })
  }
  process.on('worker', observe)
  const [soon, late] = [200, 600_000].map((restartDelay) => new WriterThread(options, () => {}, restartDelay))
  t.teardown(async () => {
    process.off('worker', observe)
    await Promise.all([soon!.dispose(), late!.dispose()])
  })
  t.same([soon!.runner(), late!.runner()], [undefined, undefined])
  while (workers.ended < 2) await sleep(5)
  mkdirSync(folder)
  await untilStarted(soon!)
  t.equal(late!.runner(), undefined)
  // Node emits the event in the next tick.
  await sleep(0)
  t.same(workers, { started: 3, ended: 2 }, 'one has been started again')
})

t.test('a thread that cannot be created fails nothing: transactions run without it', { skip }, async (t) => {
  // What cannot be cloned makes the constructor of a worker throw, as a limit of threads does.
  const options = { url: 'file:none', lockTimeout: TIMEOUT_MS, uncloneable: () => {} }
  const thread = new WriterThread(options)
  t.equal(thread.runner(), undefined)
  t.equal(thread.runner(), undefined, 'during the pause before the next attempt')
  await thread.dispose()
})

t.test('a transaction on an ended thread fails as unavailable', { skip }, async (t) => {
  const { thread, transact } = await open(t)
  await thread.dispose()
  t.equal(thread.runner(), undefined, 'it is not ready')
  const error: unknown = await transact(async (transaction) =>
    await transaction.run([{ sql: INSERT, values: ['Ada'] }])).catch((error: unknown) => error)
  t.equal(classifyError(error), 'unavailable', String(error))
})

t.test('a group of writes is committed by the thread with its last statements', { skip }, async (t) => {
  const url = await freshDatabase(t)
  const database = await openWithWriterThread({ url, pool: 1, timeout: TIMEOUT_MS })
  const { commit, close } = new Committer(database, {
    queueLimit: 10, timeout: TIMEOUT_MS, tables: [], eventLog: NO_EVENTS
  })
  t.teardown(async () => {
    await close()
    await database.close()
  })
  const openAccount: Command<string, string> = {
    name: 'openAccount',
    async runAll ({ run }, inputs) {
      await run([{
        sql: `INSERT INTO accounts (name, created_at)
          SELECT value, '2026-11-21T10:00:00.000Z' FROM json_each(?)`,
        values: [JSON.stringify(inputs)]
      }])
      return inputs.map((name) => ({ record: name }))
    }
  }
  const results = await Promise.all(['Ada', 'Bob'].map(async (name) =>
    await commit(openAccount, name, { account: null })))
  t.same(results.map(({ record }) => record), ['Ada', 'Bob'])
  t.same((await database.prisma.account.findMany()).map(({ name }) => name), ['Ada', 'Bob'])
})
