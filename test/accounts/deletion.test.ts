import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { eraseRows } from '../../src/accounts/erasure.ts'
import { ACCOUNT_TABLES } from '../../src/database/account-tables.ts'
import type { Database } from '../../src/database/database.ts'
import { startApp, type Client } from '../support/app.ts'
import { assertError } from '../support/checks.ts'
import { freshDatabase } from '../support/database.ts'
import { newCategory, newOrder, newWebhook, stocked } from '../support/fixtures.ts'
import { stockedStore } from '../support/operations.ts'
import { eventually, openReceiver } from '../support/receiver.ts'
import { openStream } from '../support/stream.ts'

const DELETED = /was revoked|was deleted/

/** Returns the number of rows that an account has in all tables, and 1 for its own. */
/** Without what is recorded meanwhile: attempts to deliver, and requests. */
const RECORDED = ['webhook_attempts', 'recorded_batches']

async function rowsOf (client: Database['prisma'], { account }: Client): Promise<number> {
  const counts = ACCOUNT_TABLES.filter((table) => !RECORDED.includes(table)).map((table) => `(SELECT count(*) FROM ${table} WHERE account_id = ${account})`)
  const [row] = await client.$queryRawUnsafe<Array<{ rows: bigint }>>(
    `SELECT (SELECT count(*) FROM accounts WHERE id = ${account}) + ${counts.join(' + ')} AS rows`)
  return Number(row!.rows)
}

t.test('of several deletions at once, one succeeds', async (t) => {
  const { openAccount } = await startApp(t)
  const [ada, bob] = [await openAccount(), await openAccount()]
  const answers = await Promise.all([ada, bob, ada, ada, bob].map(async (client) => await client.delete('/account')))
  for (const own of [[0, 2, 3], [1, 4]].map((numbers) => numbers.map((number) => answers[number]!))) {
    t.equal(own.filter(({ status }) => status === 204).length, 1)
    for (const answer of own) if (answer.status !== 204) assertError(t, answer, 401, 'unauthorized', DELETED)
  }
})

t.test('a deleted account is gone at once in every process', async (t) => {
  const url = await freshDatabase(t)
  const [here, there] = [await startApp(t, { DATABASE_URL: url }), await startApp(t, { DATABASE_URL: url })]
  const [ada, bob] = [await here.openAccount(), await here.openAccount()]
  const [adaThere, bobThere] = [there.withKey(ada.key!), there.withKey(bob.key!)]
  await newCategory(bob)
  const greeting = { message: 'Hello' }
  t.equal((await adaThere.post('/messages', greeting, { 'idempotency-key': 'hello' })).status, 201)
  t.equal((await bobThere.get('/account')).status, 200, 'both keys are in the cache of the other process')

  const stream = await openStream(here, ada)
  t.equal((await ada.delete('/account')).status, 204)

  await t.test('its writes are refused, and those of others in their group are not', async (t) => {
    const alone = await adaThere.post('/categories', { name: 'Cats' }, { 'idempotency-key': 'alone' })
    assertError(t, alone, 401, 'unauthorized', DELETED)
    const [own, keyed, replay, other] = await Promise.all([
      adaThere.post('/categories', { name: 'Dogs' }),
      adaThere.post('/categories', { name: 'Cats' }, { 'idempotency-key': 'cats' }),
      adaThere.post('/messages', greeting, { 'idempotency-key': 'hello' }),
      bobThere.post('/categories', { name: 'Birds' }, { 'idempotency-key': 'birds' })
    ])
    for (const answer of [own, keyed, replay]) assertError(t, answer, 401, 'unauthorized', DELETED)
    t.equal(other.status, 201)
    assertError(t, await adaThere.delete('/account'), 401, 'unauthorized', DELETED)
  })

  await t.test('its keys and streams end', async (t) => {
    assertError(t, await ada.get('/pets'), 401, 'unauthorized', DELETED)
    await stream.ended
    await eventually(async () => (await adaThere.get('/account')).status === 401)
  })
})

t.test('writes beside the deletion of their account are accepted or refused, and never fail', async (t) => {
  const { openAccount, app } = await startApp(t)
  const bob = await openAccount()
  for (let round = 0; round < 5; round++) {
    const ada = await openAccount()
    const write = async (client: Client): Promise<number> => (await client.post('/categories', { name: 'Dogs' })).status
    const [deleted, hers, his] = await Promise.all([
      ada.delete('/account', { 'idempotency-key': 'goodbye' }),
      Promise.all(Array.from({ length: 9 }, async () => await write(ada))),
      Promise.all(Array.from({ length: 9 }, async () => await write(bob)))
    ])
    t.equal(deleted.status, 204)
    t.same(hers.filter((status) => status !== 201 && status !== 401), [])
    t.same(his, Array(9).fill(201))
    const categories = await app.database.prisma.category.count({ where: { accountId: ada.account! } })
    t.equal(categories, hers.filter((status) => status === 201).length)
  }
})

t.test('deliveries of a deleted account are dropped', async (t) => {
  const receiver = await openReceiver(t)
  const settings = { DATABASE_URL: await freshDatabase(t), WEBHOOKS_ALLOW_PRIVATE: 'true' }
  const { openAccount, app } = await startApp(t, settings)
  const ada = await openAccount()
  await ada.post('/webhooks', { url: receiver.url })
  await ada.post('/messages', { message: 'Hello' })
  await ada.delete('/account')
  t.equal(await app.database.prisma.delivery.count(), 1)
  await startApp(t, { ...settings, DELIVERY: 'true' })
  await eventually(async () => await app.database.prisma.delivery.count() === 0)
  t.same(receiver.received, [])
  t.equal((await app.database.prisma.account.findUnique({ where: { id: ada.account! } }))?.lastEventId, 1n,
    'nothing is written to its feed')
})

t.test('the rows of a deleted account are erased in steps, and any process continues', async (t) => {
  const { openAccount, app: { commit, database: { prisma } } } = await startApp(t, { REQUEST_TIMEOUT_MS: '60000' })
  const [ada, eve, bob] = [await openAccount(), await openAccount(), await openAccount()]
  for (const client of [ada, eve, bob]) {
    await stockedStore(client)
    await newOrder(client, await stocked(client, 3))
    await newWebhook(client)
    await client.post('/messages', { message: 'Hello' }, { 'idempotency-key': 'hello' })
  }
  const categories = Array.from({ length: 1_200 }, () => ({ accountId: ada.account!, name: 'Dogs' }))
  await prisma.category.createMany({ data: categories })
  const [before, kept] = [await rowsOf(prisma, ada), await rowsOf(prisma, bob)]
  await ada.delete('/account')
  await eve.delete('/account')
  t.equal(await rowsOf(prisma, ada), before)

  const position = { tables: 0, after: 0 }
  const { record: progress } = await commit(eraseRows, { account: ada.account!, position }, { account: null })
  t.equal(progress.state, 'erasing')
  const left = await rowsOf(prisma, ada)
  t.ok(left >= before - 500 && left < before - 400, `a step erases a limited number of rows: ${left} of ${before} are left`)

  // As if the process had ended after the step. A request to the other account may still arrive, and then wait.
  for (const [{ account }, ago] of [[eve, 60_000], [ada, 200_000]] as const) {
    await prisma.account.update({ where: { id: account! }, data: { deletedAt: new Date(Date.now() - ago) } })
  }
  await eventually(async () => await rowsOf(prisma, ada) === 0)
  // The search that found one account would have found the other as well, and erased it next.
  await sleep(1_000)
  t.ok(await rowsOf(prisma, eve) > 20, 'rows are kept while a request with a key of their account may still read them')
  t.equal(await rowsOf(prisma, bob), kept)
  t.equal(await prisma.webhookAttempt.count({ where: { accountId: ada.account! } }), 0)
  t.equal(await prisma.recordedBatch.count({ where: { accountId: ada.account! } }), 0)
})

t.test('the rows of an account that is not deleted are never erased with it', async (t) => {
  const { openAccount, app: { commit, database } } = await startApp(t)
  const ada = await openAccount()
  const position = { tables: 100, after: 0 }
  const { record: progress } = await commit(eraseRows, { account: ada.account!, position }, { account: null })
  t.equal(progress.state, 'rows are locked')
  t.equal(await rowsOf(database.prisma, ada), 2)
})
