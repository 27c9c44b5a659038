import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startApp, type TestApp } from '../support/app.ts'
import { newWebhook } from '../support/fixtures.ts'
import { recordIntervals, type Intervals } from '../support/intervals.ts'
import { eventually } from '../support/receiver.ts'

/** The timers of the service that delete what has expired, each with its effect. The others have tests beside them. */

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()

async function startTimed (
  t: Test, settings: Record<string, string> = {}
): Promise<TestApp & { intervals: Intervals }> {
  const intervals = recordIntervals(t)
  return { ...await startApp(t, settings), intervals }
}

t.test('expired events are deleted once an hour, beginning with the first minute', async (t) => {
  const { app, openAccount, intervals } = await startTimed(t, { EVENT_RETENTION_DAYS: '3' })
  const ada = await openAccount()
  const { event } = app.database.prisma
  const { commit } = app
  let hasRun = false
  app.commit = (async (command, input, context) => {
    const result = await commit(command, input, context)
    if (command.name === 'deleteExpiredEvents') hasRun = (result.record as { after?: number }).after === undefined
    return result
  }) as typeof commit
  const age = async (id: number, days: number): Promise<void> => {
    const accountId = BigInt(ada.account!)
    await event.updateMany({ where: { accountId, id: BigInt(id) }, data: { timestamp: ago(days * DAY) } })
  }
  const ids = async (): Promise<number[]> => (await ada.get('/events')).body.map(({ id }: { id: number }) => id)
  for (let i = 0; i < 4; i++) await ada.post('/messages', { message: `${i}` })
  await age(1, 3.1)
  await age(2, 2.9)
  t.same(await ids(), [1, 2, 3, 4])
  intervals.elapse(MINUTE)
  await eventually(async () => (await ids()).length < 4)
  t.same(await ids(), [2, 3, 4])
  // The job looks for more after its first step.
  await eventually(() => hasRun)

  await age(2, 3.1)
  for (let minute = 2; minute <= 60; minute++) {
    intervals.elapse(MINUTE)
    await nextTurn()
  }
  t.same(await ids(), [2, 3, 4], 'within the hour')
  // A run that takes longer skips a tick.
  await eventually(async () => {
    intervals.elapse(MINUTE)
    return (await ids()).length < 3
  })
  t.same(await ids(), [3, 4])
})

t.test('expired idempotency records are deleted every minute', async (t) => {
  const { app, openAccount, intervals } = await startTimed(t)
  const ada = await openAccount()
  for (const key of ['old', 'new']) await ada.post('/messages', { message: key }, { 'idempotency-key': key })
  const { idempotencyRecord } = app.database.prisma
  await idempotencyRecord.updateMany({ where: { key: 'old' }, data: { expiresAt: ago(1_000) } })
  const keys = async (): Promise<string[]> => (await idempotencyRecord.findMany()).map(({ key }) => key).sort()
  t.same(await keys(), ['new', 'old'])
  intervals.elapse(MINUTE)
  await eventually(async () => (await keys()).length < 2)
  t.same(await keys(), ['new'])
})

t.test('finished deliveries are deleted every minute, also where DELIVERY is off', async (t) => {
  const { app, openAccount, intervals } = await startTimed(t)
  const ada = await openAccount()
  await newWebhook(ada)
  for (let i = 0; i < 2; i++) await ada.post('/messages', { message: `${i}` })
  const { delivery } = app.database.prisma
  await delivery.update({ where: { id: 1 }, data: { state: 'delivered', settledAt: ago(2 * HOUR) } })
  intervals.elapse(MINUTE)
  await eventually(async () => await delivery.count() < 2)
  t.same((await delivery.findMany()).map(({ id }) => Number(id)), [2])
})

t.test('a service that stops ends its timers', async (t) => {
  const { app, openAccount, intervals } = await startTimed(t)
  const ada = await openAccount()
  await ada.post('/messages', { message: 'Hello' })
  await app.close()
  t.doesNotThrow(() => { for (const ms of [100, 250, 1_000, MINUTE]) intervals.elapse(ms) })
})
