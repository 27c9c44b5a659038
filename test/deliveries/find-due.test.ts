import t from 'tap'
import { findDueWork } from '../../src/deliveries/find-due.ts'
import { startApp } from '../support/app.ts'
import { becomes, DELIVERING, send } from '../support/delivery.ts'
import { openReceiver } from '../support/receiver.ts'

t.test('a poll looks at a page of webhooks, and the next one goes on behind it', async (t) => {
  const { app, config, openAccount } = await startApp(t, { ...DELIVERING, DELIVERY: 'false' })
  const bob = await openAccount()
  const { writer } = app.database
  // Disabled webhooks, each with a delivery that waits.
  const at = new Date().toISOString()
  const giveUpAt = new Date(Date.now() + 86_400_000).toISOString()
  const ids = Array.from({ length: 1_100 }, (_, i) => i + 1)
  await writer.webhook.createMany({
    data: ids.map((id) => ({
      id, accountId: bob.account!, url: 'http://127.0.0.1:9', events: '[]', enabled: false, secret: 'x', createdAt: at
    }))
  })
  await writer.delivery.createMany({
    data: ids.map((webhookId) => ({ accountId: bob.account!, webhookId, eventId: 1, nextTryAt: at, giveUpAt }))
  })
  const pages: number[][] = []
  for (let after = 0; pages.length === 0 || after > 0;) {
    const { webhooks, next } = await findDueWork(app.read, app.clocks, 'worker', after)
    pages.push(webhooks.map(({ id }) => id))
    after = next
  }
  t.same(pages.map(({ length }) => length), [500, 500, 100])
  t.same(pages.flat(), ids)

  const worker = await startApp(t, { ...DELIVERING, DATABASE_URL: config.DATABASE_URL })
  const ada = worker.withKey((await openAccount()).key!)
  const { url, until } = await openReceiver(t)
  // Its webhook comes behind all of these.
  await writer.webhook.create({
    data: {
      id: 10_000,
      accountId: (await ada.get('/account')).body.id,
      url,
      events: '["message.created"]',
      secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
      createdAt: at
    }
  })
  const message = await send(ada)
  await until(1)
  await becomes(ada, message, 'delivered')
})
