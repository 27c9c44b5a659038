import t from 'tap'
import type { Commit } from '../../src/database/group-commit/committer.ts'
import type { Read } from '../../src/database/reads/query.ts'
import { findDueWork } from '../../src/deliveries/find-due.ts'
import { startApp } from '../support/app.ts'
import { becomes, DELIVERING, send } from '../support/delivery.ts'
import { eventually, openReceiver } from '../support/receiver.ts'
import { startDeliveryWorker } from './workers.ts'

t.test('a poll looks at a page of webhooks, and the next one goes on behind it', async (t) => {
  const { app, config, openAccount } = await startApp(t, { ...DELIVERING, DELIVERY: 'false' })
  const bob = await openAccount()
  const { prisma } = app.database
  // Disabled webhooks, each with a delivery that waits.
  const at = new Date().toISOString()
  const giveUpAt = new Date(Date.now() + 86_400_000).toISOString()
  const ids = Array.from({ length: 1_100 }, (_, i) => i + 1)
  await prisma.webhook.createMany({
    data: ids.map((id) => ({
      id, accountId: bob.account!, url: 'http://127.0.0.1:9', events: '[]', enabled: false, secret: 'x', createdAt: at
    }))
  })
  await prisma.delivery.createMany({
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

  await t.test('a poll that fails within a pass is repeated after a pause', async (t) => {
    const polls: number[] = []
    const read: Read = async (query, input) => {
      if (polls.push(performance.now()) > 1) throw new Error('the database is away')
      return await app.read(query, input)
    }
    const failing = Object.assign(Object.create(app), { read }) as typeof app
    const worker = startDeliveryWorker(t, failing, {})
    await eventually(() => polls.length >= 4)
    t.ok(polls[3]! - polls[1]! >= 990, 'two pauses of half a second')
    await worker.close()
  })

  await t.test('a pass checks few disabled webhooks', async (t) => {
    let polls = 0
    let claims = 0
    const read: Read = async (query, input) => {
      const row = await app.read(query, input)
      polls++
      return row
    }
    const commit: Commit = async (command, input, context) => {
      if (command.name === 'claimDeliveries') claims++
      return await app.commit(command, input, context)
    }
    const watched = Object.assign(Object.create(app) as typeof app, { read, commit })
    const worker = startDeliveryWorker(t, watched, {})
    await eventually(() => polls >= pages.length && claims > 0)
    await worker.close()
    t.ok(claims < 100, `${claims} of ${ids.length} were checked`)
  })

  await t.test('a new delivery is claimed in the first poll, wherever its webhook is in the pass', async (t) => {
    let polls = 0
    const claimed = new Map<number, number>()
    const read: Read = async (query, input) => {
      polls++
      return await app.read(query, input)
    }
    const commit: Commit = async (command, input, context) => {
      const { webhookId } = input as { webhookId?: number }
      if (command.name === 'claimDeliveries' && !claimed.has(webhookId!)) claimed.set(webhookId!, polls)
      return await app.commit(command, input, context)
    }
    const worker = startDeliveryWorker(t, Object.assign(Object.create(app) as typeof app, { read, commit }), {})
    await eventually(() => polls >= pages.length)
    const webhook = { accountId: bob.account!, url: 'http://127.0.0.1:9', events: '[]', secret: 'x', createdAt: at }
    await prisma.webhook.create({ data: { id: 5_000, ...webhook } })
    const before = polls
    await prisma.delivery.create({
      data: { accountId: bob.account!, webhookId: 5_000, eventId: 2, nextTryAt: at, giveUpAt }
    })
    worker.wake([])
    await eventually(() => claimed.has(5_000))
    await worker.close()
    // One may have begun before.
    t.ok(claimed.get(5_000)! <= before + 1, `after ${claimed.get(5_000)! - before} polls`)
    await prisma.delivery.deleteMany({ where: { webhookId: 5_000 } })
  })

  const worker = await startApp(t, { ...DELIVERING, DATABASE_URL: config.DATABASE_URL })
  const ada = worker.withKey((await openAccount()).key!)
  const { url, until } = await openReceiver(t)
  // Its webhook comes behind all of these.
  await prisma.webhook.create({
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

t.test('of several webhooks, the one that waits longest is served first', async (t) => {
  const { app, openAccount } = await startApp(t, { ...DELIVERING, DELIVERY: 'false' })
  const ada = await openAccount()
  const ids: number[] = []
  for (let ago = 1; ago <= 3; ago++) {
    const { body: { id: webhookId } } = await ada.post('/webhooks', { url: 'http://127.0.0.1:9' })
    const nextTryAt = new Date(Date.now() - ago * 60_000)
    const giveUpAt = new Date(Date.now() + 86_400_000)
    await app.database.prisma.delivery.create({
      data: { accountId: ada.account!, webhookId, eventId: ago, nextTryAt, giveUpAt }
    })
    ids.push(webhookId)
  }
  const claimed = new Set<number>()
  const commit: Commit = async (command, input, context) => {
    if (command.name === 'claimDeliveries') claimed.add((input as unknown as { webhookId: number }).webhookId)
    return await app.commit(command, input, context)
  }
  startDeliveryWorker(t, Object.assign(Object.create(app) as typeof app, { commit }), {})
  await eventually(() => claimed.size === 3)
  t.same([...claimed], ids.toReversed())
})
