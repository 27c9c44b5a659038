import t from 'tap'
import { deleteExpiredEvents, retention } from '../../src/events/retention.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { eventually } from '../support/receiver.ts'
import { startJobAlone } from '../support/jobs.ts'

const HOUR = 3_600_000
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()

async function deleteExpired ({ app }: TestApp, before: string): Promise<number> {
  let steps = 0
  for (let after: number | undefined = 0; after !== undefined; steps++) {
    after = (await app.commit(deleteExpiredEvents, { after, before }, { account: null })).record.after
  }
  return steps
}

t.test('expired events are deleted, oldest first, and no other events', async (t) => {
  const service = await startApp(t)
  const [ada, bob, eve] = await Promise.all([service.openAccount(), service.openAccount(), service.openAccount()])
  for (const client of [ada, bob, eve]) {
    for (let i = 0; i < 4; i++) await client.post('/messages', { message: `${i}` })
  }
  const { event } = service.app.database.prisma
  const old = { timestamp: ago(48 * HOUR) }
  await event.updateMany({ where: { accountId: BigInt(ada.account!), id: { lte: 2 } }, data: old })
  await event.updateMany({ where: { accountId: BigInt(bob.account!) }, data: old })
  await deleteExpired(service, ago(24 * HOUR))
  t.same((await ada.get('/events')).body.map(({ id }: { id: number }) => id), [3, 4])
  t.same((await bob.get('/events')).body, [])
  t.same((await eve.get('/events')).body.length, 4)
  t.match(await ada.get('/events?after=1'), {
    status: 410, body: { code: 'events_expired', message: /oldest stored event is 3/ }
  })
  t.match(await bob.get('/events?after=1'), { status: 410, body: { code: 'events_expired' } })
  t.match(await bob.get('/events?after=4'), { status: 200, body: [], headers: { 'event-id': '4' } })
  await bob.post('/messages', { message: 'again' })
  t.same((await bob.get('/events')).body.map(({ id }: { id: number }) => id), [5])
})

t.test('many events are deleted in small steps', async (t) => {
  const service = await startApp(t)
  const ada = await service.openAccount()
  await service.app.database.prisma.event.createMany({
    data: Array.from({ length: 1_200 }, (_, i) => ({
      accountId: BigInt(ada.account!), id: BigInt(i + 1), type: 'message.created', timestamp: ago(48 * HOUR), data: '{}'
    }))
  })
  t.equal(await deleteExpired(service, ago(24 * HOUR)), 4, 'three steps that delete and one that finds none')
  t.equal(await service.app.database.prisma.event.count(), 0)
})

t.test('the hourly sweep deletes what expired by the clock of its account', async (t) => {
  const service = await startApp(t)
  const { commit, clocks, database } = service.app
  const [ada, bob] = await Promise.all([service.openAccount(), service.openAccount()])
  await ada.post('/lab/clock/advance', { seconds: 240 * HOUR / 1_000 })
  for (const client of [ada, bob]) await client.post('/messages', { message: 'Hello' }, { 'idempotency-key': 'one' })
  await database.prisma.idempotencyRecord.updateMany({ data: { expiresAt: ago(-5 * 24 * HOUR) } })
  // 25 days old, and 35 by the clock that is 10 days ahead.
  await database.prisma.event.updateMany({ data: { timestamp: ago(25 * 24 * HOUR) } })
  const pass = await startJobAlone(t, { commit, clocks }, (app) => app.register(retention, { days: 30 }))
  pass(60_000)
  await eventually(async () => (await ada.get('/events')).body.length === 0)
  t.equal((await bob.get('/events')).body.length, 1)
  const records = await database.prisma.idempotencyRecord.findMany()
  t.same(records.map(({ accountId }) => Number(accountId)), [bob.account])
})
