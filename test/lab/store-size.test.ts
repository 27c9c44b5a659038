import t from 'tap'
import { startApp } from '../support/app.ts'
import { assertError } from '../support/checks.ts'
import { newCategory } from '../support/fixtures.ts'

t.test('the size of a store', async (t) => {
  const { app, openAccount } = await startApp(t)
  const { prisma } = app.database

  await t.test('a store of more than 8 MB is neither copied nor replaced, however few its records are', async (t) => {
    const ada = await openAccount()
    const add = async (bytes: number, character = 'é'): Promise<unknown> => {
      const description = character.repeat(bytes / Buffer.byteLength(character))
      return await prisma.category.create({ data: { accountId: ada.account!, name: 'x', description } })
    }
    for (let i = 0; i < 7; i++) await add(1_100_000)
    await add(48_000, '\u0001')
    const { status, body: { id } } = await ada.post('/lab/snapshots', {})
    t.equal(status, 201)
    const { text } = await ada.get(`/lab/snapshots/${id}/rows`)
    t.ok(text.length > 4_000_000 && Buffer.byteLength(text) <= 8_000_000, `${Buffer.byteLength(text)} bytes`)
    t.equal((await ada.post(`/lab/snapshots/${id}/restore`, undefined)).status, 200)

    await add(2_000, '\u0001')
    assertError(t, await ada.post('/lab/snapshots', {}), 409, 'snapshot_too_large', '8 MB', 'as JSON')
    t.equal((await ada.post(`/lab/snapshots/${id}/restore`, undefined)).status, 200, 'its texts have less')

    await add(640_598)
    t.equal((await ada.get('/lab/state')).status, 200, '8,388,607 bytes of text')
    await newCategory(ada, 'ab')
    for (const [path, body] of [[`/lab/snapshots/${id}/restore`, undefined], ['/lab/reset', {}]] as const) {
      assertError(t, await ada.post(path, body), 409, 'store_too_large', '8 MB')
    }
    t.equal(await prisma.category.count({ where: { accountId: ada.account! } }), 10)
    t.equal(await prisma.snapshotRow.count({ where: { accountId: ada.account! } }), 8)
    for (const path of ['/lab/state', `/lab/snapshots/${id}/diff`]) {
      assertError(t, await ada.get(path), 409, 'store_too_large', '8 MB')
    }
  })

  await t.test('a reset drops the deliveries of a store that has more of them than records', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const { body: { id } } = await ada.post('/lab/snapshots', {})
    for (const path of ['/lab/reset', `/lab/snapshots/${id}/restore`]) {
      const later = new Date(Date.now() + 3_600_000)
      const deliveries = async (accountId: number, messagePosition: bigint | null, count: number): Promise<void> => {
        const times = { nextTryAt: later, giveUpAt: later }
        const delivery = { accountId, webhookId: 4_711n, eventId: 1n, messagePosition, ...times }
        await prisma.delivery.createMany({ data: Array<typeof delivery>(count).fill(delivery) })
      }
      await ada.post('/messages', { message: 'Hello' })
      await bob.post('/messages', { message: 'Hello' })
      const [hers, his] = await Promise.all([ada, bob].map(async ({ account }) =>
        await prisma.message.findFirstOrThrow({ where: { accountId: account! }, orderBy: { position: 'desc' } })))
      await deliveries(ada.account!, hers!.position, 2_000)
      await deliveries(ada.account!, null, 2)
      await deliveries(bob.account!, his!.position, 3)
      await deliveries(ada.account!, hers!.position, 5)
      const before = await prisma.delivery.count({ where: { accountId: bob.account! } })
      t.equal((await ada.post(path, path === '/lab/reset' ? {} : undefined)).status, 200)
      t.equal(await prisma.delivery.count({ where: { accountId: ada.account!, messagePosition: { not: null } } }), 0)
      t.ok(await prisma.delivery.count({ where: { accountId: ada.account! } }) >= 2, 'those of other events stay')
      t.equal(await prisma.delivery.count({ where: { accountId: bob.account! } }), before)
    }
  })
})
