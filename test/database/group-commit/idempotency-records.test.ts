import t from 'tap'
import { Committer } from '../../../src/database/group-commit/committer.ts'
import { deleteExpiredIdempotencyRecords } from '../../../src/database/group-commit/idempotency-records.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import { freshDatabase } from '../../support/database.ts'
import { NO_EVENTS } from '../../support/no-events.ts'

t.test('expired records are deleted in steps, and others stay', async (t) => {
  const database = await openDatabase({ url: await freshDatabase(t), pool: 5, timeout: 60_000 })
  const options = { queueLimit: 10, timeout: 60_000, tables: [], eventLog: NO_EVENTS }
  const { commit, close } = new Committer(database, options)
  t.teardown(async () => {
    await close()
    await database.close()
  })
  const now = new Date().toISOString()
  const { id: accountId } = await database.prisma.account.create({ data: { name: 'A store', createdAt: now } })
  const record = (key: string, expiresAt: Date): object => ({
    accountId,
    key,
    fingerprint: 'f',
    createdAt: now,
    expiresAt
  })
  const past = new Date(Date.now() - 1000)
  const future = new Date(Date.now() + 60_000)
  await database.prisma.idempotencyRecord.createMany({
    data: [...Array.from({ length: 700 }, (_, i) => record(`old ${i}`, past)), record('new', future)] as never
  })
  t.equal((await commit(deleteExpiredIdempotencyRecords, {}, { account: null })).record, true, 'there is more')
  t.equal(await database.prisma.idempotencyRecord.count(), 201)
  t.equal((await commit(deleteExpiredIdempotencyRecords, {}, { account: null })).record, false)
  t.same((await database.prisma.idempotencyRecord.findMany()).map(({ key }) => key), ['new'])
})
