import t from 'tap'
import { deleteSettledDeliveries } from '../../src/deliveries/cleanup.ts'
import { endDeliveries } from '../../src/deliveries/end-unsendable.ts'
import { startApp } from '../support/app.ts'
import { subscribed } from '../support/delivery.ts'
import { newWebhook } from '../support/fixtures.ts'
import { eventually } from '../support/receiver.ts'

const HOUR = 3_600_000
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()

t.test('finished deliveries are deleted after a time, and no other deliveries', async (t) => {
  const { app, openAccount } = await startApp(t)
  const ada = await openAccount()
  await newWebhook(ada)
  for (let i = 0; i < 4; i++) await ada.post('/messages', { message: `${i}` })
  const { delivery } = app.database.prisma
  for (const [id, state, settledAt] of [
    [1, 'delivered', ago(2 * HOUR)], [2, 'failed', ago(2 * HOUR)], [3, 'delivered', ago(HOUR / 2)]
  ] as const) {
    await delivery.update({ where: { id }, data: { state, settledAt } })
  }
  const left = async (state: 'delivered' | 'failed'): Promise<number[]> => {
    const before = Date.now() - HOUR
    t.equal((await app.commit(deleteSettledDeliveries, { state, before }, { account: null })).record, false)
    return (await delivery.findMany({ orderBy: { id: 'asc' } })).map(({ id }) => Number(id))
  }
  t.same(await left('delivered'), [2, 3, 4])
  t.same(await left('failed'), [3, 4])
})

t.test('a transaction drops at most 500 deliveries of deleted webhooks, all webhooks together', async (t) => {
  const { app, openAccount } = await startApp(t, { DELIVERY: 'false' })
  const { account } = await openAccount()
  const { delivery } = app.database.prisma
  // Of webhooks that do not exist any more.
  const webhooks = [1001, 1002, 1003]
  const at = ago(HOUR)
  await delivery.createMany({
    data: webhooks.flatMap((webhookId) => Array.from({ length: 300 }, (_, eventId) =>
      ({ accountId: account!, webhookId, eventId, nextTryAt: at, giveUpAt: at })))
  })
  const endAll = async (): Promise<boolean[]> => await Promise.all(webhooks.map(async (webhookId) =>
    (await app.commit(endDeliveries, { webhookId, account: account! }, { account: null })).record))
  t.same(await endAll(), [false, true, true])
  t.equal(await delivery.count(), 400)
  t.same(await endAll(), [false, false, false])
  t.equal(await delivery.count(), 0)
})

t.test('the attempts of a deleted webhook go, also if no delivery waits', async (t) => {
  const { service: { app }, ada, path } = await subscribed(t)
  t.equal((await ada.request('POST', `${path}/test`)).status, 202)
  const { webhookAttempt, delivery } = app.database.prisma
  await eventually(async () => await webhookAttempt.count() === 1)
  t.equal((await ada.delete(path)).status, 204)
  const waiting = { where: { state: 'waiting' } } as const
  await eventually(async () => await webhookAttempt.count() + await delivery.count(waiting) === 0)
})

t.test('a transaction deletes at most 500 attempts of a deleted webhook, before its deliveries', async (t) => {
  const { app, openAccount } = await startApp(t, { DELIVERY: 'false' })
  const { account } = await openAccount()
  const { delivery, webhookAttempt } = app.database.prisma
  const webhookId = 1001
  const at = ago(HOUR)
  await delivery.create({ data: { accountId: account!, webhookId, eventId: 1, nextTryAt: at, giveUpAt: at } })
  await webhookAttempt.createMany({
    data: Array.from({ length: 700 }, (_, id) =>
      ({ accountId: account!, webhookId, id, eventId: 1, at, durationMs: 1, totalBytes: 0 }))
  })
  const end = async (): Promise<boolean> =>
    (await app.commit(endDeliveries, { webhookId, account: account! }, { account: null })).record
  t.same([await end(), await webhookAttempt.count(), await delivery.count()], [true, 200, 1])
  t.same([await end(), await webhookAttempt.count(), await delivery.count()], [false, 0, 0])
})

t.test('of each webhook, the last 10,000 failed deliveries are kept', async (t) => {
  const { app, openAccount } = await startApp(t)
  const ada = await openAccount()
  const [webhookId, other] = [await newWebhook(ada), await newWebhook(ada)]
  await ada.patch(`/webhooks/${webhookId}`, { enabled: false })
  const { delivery } = app.database.prisma
  const at = ago(HOUR)
  const insert = async (webhookId: number, from: number, to: number): Promise<void> => {
    await delivery.createMany({
      data: Array.from({ length: to - from + 1 }, (_, i) => ({
        accountId: ada.account!,
        webhookId,
        eventId: from + i,
        state: 'failed',
        nextTryAt: at,
        giveUpAt: at,
        settledAt: at
      }))
    })
  }
  // Each in calls of 5,000: Prisma splits a larger one, and sends the parts at once, which node-postgres deprecates.
  for (const [from, to] of [[1, 5_000], [5_001, 10_000], [10_001, 10_003]] as const) await insert(webhookId, from, to)
  await insert(other, 1, 3)
  await app.commit(endDeliveries, { webhookId, account: ada.account! }, { account: null })
  t.equal(await delivery.count({ where: { webhookId } }), 10_000)
  t.equal(Number((await delivery.findFirst({ where: { webhookId }, orderBy: { eventId: 'asc' } }))!.eventId), 4)
  t.equal(await delivery.count({ where: { webhookId: other } }), 3)
})
