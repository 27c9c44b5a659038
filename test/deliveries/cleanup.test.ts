import t from 'tap'
import { deleteSettledDeliveries } from '../../src/deliveries/cleanup.ts'
import { startApp } from '../support/app.ts'
import { newWebhook } from '../support/fixtures.ts'

const HOUR = 3_600_000
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()

t.test('finished deliveries are deleted after an hour, and no other deliveries', async (t) => {
  const { app, openAccount } = await startApp(t)
  const ada = await openAccount()
  await newWebhook(ada)
  for (let i = 0; i < 4; i++) await ada.post('/messages', { message: `${i}` })
  const { delivery } = app.database.writer
  for (const [id, state, settledAt] of [
    [1, 'delivered', ago(2 * HOUR)], [2, 'failed', ago(2 * HOUR)], [3, 'delivered', ago(HOUR / 2)]
  ] as const) {
    await delivery.update({ where: { id }, data: { state, settledAt } })
  }
  t.equal((await app.commit(deleteSettledDeliveries, {}, { account: null })).record, false)
  t.same((await delivery.findMany({ orderBy: { id: 'asc' } })).map(({ id }) => Number(id)), [3, 4])
})
