import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Command } from '../../../src/database/group-commit/command.ts'
import { createCommitter } from '../../../src/database/group-commit/committer.ts'
import { classifyError } from '../../../src/database/error-classification.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import { database as databaseName, freshDatabase } from '../../support/database.ts'
import { stallingNetwork } from '../../support/stall.ts'

const TIMEOUT_MS = 2_000

t.test(
  'a transaction on a stalled server does not affect the next one on its connection',
  { skip: databaseName === 'sqlite' && 'SQLite has no network' },
  async (t) => {
    const url = await freshDatabase(t)
    const network = await stallingNetwork(t, url)
    const database = await openDatabase({ url: network.url, pool: 1, timeout: TIMEOUT_MS })
    const onlooker = await openDatabase({ url, pool: 1, timeout: 5_000 })
    const { commit, close } = createCommitter(database, {
      queueLimit: 100,
      timeout: TIMEOUT_MS,
      tables: [],
      beforeCommit: []
    })
    t.teardown(async () => {
      await close()
      await Promise.all([database.close(), onlooker.close()])
    })
    const { id: accountId } = await onlooker.writer.account.create({
      data: { name: 'A store', createdAt: '2026-11-21T10:00:00.000Z' }
    })

    /** Runs two statements with an action between them. */
    const addTwo: Command<{ name: string, between: () => void }, undefined> = {
      name: 'addTwo',
      async run ({ prisma: client }, inputs) {
        const prisma = await client()
        for (const { name, between } of inputs) {
          await prisma.category.create({ data: { accountId, name: `${name} 1` } })
          between()
          await prisma.category.create({ data: { accountId, name: `${name} 2` } })
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
    await sleep(3 * TIMEOUT_MS)
    network.goOn()
    await sleep(TIMEOUT_MS)
    await commit(addTwo, { name: 'after', between: () => {} }, writer)
    const names = (await onlooker.reader.category.findMany({ orderBy: { id: 'asc' } })).map(({ name }) => name)
    t.same(names, ['before 1', 'before 2', 'after 1', 'after 2'])
  }
)

t.test(
  'statements of a transaction do not continue after its time-out',
  { skip: databaseName === 'sqlite' && 'statements of SQLite are synchronous' },
  async (t) => {
    const url = await freshDatabase(t)
    const { writer, close } = await openDatabase({ url, pool: 1, timeout: 5_000 })
    const other = await openDatabase({ url, pool: 1, timeout: 5_000 })
    t.teardown(async () => {
      await Promise.all([close(), other.close()])
    })
    let lock = (): void => {}
    const locked = new Promise<void>((resolve) => {
      lock = resolve
    })
    const held = other.writer.$transaction(async (prisma) => {
      await prisma.$executeRaw`LOCK TABLE accounts IN EXCLUSIVE MODE`
      lock()
      await sleep(500)
    })
    await locked
    const createdAt = '2026-11-21T10:00:00.000Z'
    const error = await writer
      .$transaction(
        async (prisma) => {
          // One call runs two statements. The time-out comes while the first waits for the lock.
          await prisma.account.create({
            data: { name: 'A store', createdAt, apiKeys: { create: { prefix: 'p', hash: 'h', createdAt } } }
          })
        },
        { timeout: 200, maxWait: 5_000 }
      )
      .then(
        () => undefined,
        (error: unknown) => error
      )
    // Outside the transaction the key's account does not exist, which would be reported as a defect.
    t.equal(classifyError(error), 'unavailable', String(error))
    await held
    t.equal(await other.writer.apiKey.count(), 0)
  }
)
