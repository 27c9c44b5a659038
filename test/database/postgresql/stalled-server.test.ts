// Only on PostgreSQL: SQLite has no network.

import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { classifyError } from '../../../src/database/error-classification.ts'
import type { Command } from '../../../src/database/group-commit/command.ts'
import { Committer } from '../../../src/database/group-commit/committer.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import { database as databaseName, freshDatabase } from '../../support/database.ts'
import { stallingNetwork } from '../../support/stall.ts'
import { NO_EVENTS } from '../../support/no-events.ts'

const TIMEOUT_MS = 2_000

const skip = databaseName === 'sqlite' && 'SQLite has no network'

t.test(
  'a transaction on a stalled server does not affect the next one on its connection',
  { skip },
  async (t) => {
    const url = await freshDatabase(t)
    const network = await stallingNetwork(t, url)
    const database = await openDatabase({ url: network.url, pool: 1, timeout: TIMEOUT_MS })
    const onlooker = await openDatabase({ url, pool: 1, timeout: 60_000 })
    const { commit, close } = new Committer(database, {
      queueLimit: 100,
      timeout: 60_000,
      tables: [],
      eventLog: NO_EVENTS
    })
    t.teardown(async () => {
      await close()
      await Promise.all([database.close(), onlooker.close()])
    })
    const { id: accountId } = await onlooker.prisma.account.create({
      data: { name: 'A store', createdAt: '2026-11-21T10:00:00.000Z' }
    })

    /** Runs two statements with an action between them. */
    const addTwo: Command<{ name: string, between: () => void }, undefined> = {
      name: 'addTwo',
      async runAll ({ dialect, execute }, inputs) {
        const insert = `INSERT INTO categories (account_id, name)
          SELECT i.account, i.name FROM ${dialect.jsonRows('i', { account: 'bigint', name: 'text' })}`
        for (const { name, between } of inputs) {
          await execute(insert, [{ account: Number(accountId), name: `${name} 1` }])
          between()
          await execute(insert, [{ account: Number(accountId), name: `${name} 2` }])
        }
        return inputs.map(() => ({ record: undefined }))
      }
    }
    const writer = { account: null }

    await commit(addTwo, { name: 'before', between: () => {} }, writer)
    await t.rejects(commit(addTwo, { name: 'stalled', between: network.stall }, writer), {
      code: 'DATABASE_UNAVAILABLE'
    })
    // The ROLLBACK times out as well.
    await sleep(1.5 * TIMEOUT_MS)
    network.goOn()
    await sleep(500)
    await commit(addTwo, { name: 'after', between: () => {} }, writer)
    const names = (await onlooker.prisma.category.findMany({ orderBy: { id: 'asc' } })).map(({ name }) => name)
    t.same(names, ['before 1', 'before 2', 'after 1', 'after 2'])
  }
)

t.test('statements without an answer end after the time-out, and their connection with them', { skip }, async (t) => {
  const network = await stallingNetwork(t, await freshDatabase(t))
  const { read: run, transact, close } = await openDatabase({ url: network.url, pool: 2, timeout: TIMEOUT_MS })
  t.teardown(close)
  const statements = [{ sql: 'SELECT 1 AS one', values: [] }]
  const read = async (): Promise<unknown> => (await run(statements))[0]
  const write = async (): Promise<unknown> =>
    await transact(async (transaction) => (await transaction.commit(statements))[0])
  for (const send of [read, write]) {
    t.same(await send(), [{ one: 1 }])
    network.silence()
    const began = performance.now()
    const ended = send().catch((error: unknown) => error)
    const error = await Promise.race([ended, sleep(60_000, 'it waits', { ref: false })])
    t.equal(classifyError(error), 'unavailable', String(error))
    const waited = performance.now() - began
    t.ok(waited >= TIMEOUT_MS - 10, `after ${waited.toFixed(0)} ms`)
    t.same(await send(), [{ one: 1 }], 'the next has another connection')
  }
})
