import t from 'tap'
import { createEndingPace } from '../../src/deliveries/ending-pace.ts'
import { createRequestSlots } from '../../src/deliveries/request-slots.ts'
import { startApp } from '../support/app.ts'
import { DELIVERING, send } from '../support/delivery.ts'
import { openReceiver } from '../support/receiver.ts'
import { startDeliveryWorker } from './workers.ts'

t.test('slow receivers of some accounts do not delay the deliveries of another', { timeout: 600_000 }, async (t) => {
  const service = await startApp(t, { ...DELIVERING, DELIVERY: 'false' })
  const slow = await openReceiver(t, () => {})
  // Eight calls of each webhook would fill the 500 slots.
  for (let i = 0; i < 4; i++) {
    const ada = await service.openAccount()
    await Promise.all(Array.from({ length: 20 }, async () => await ada.post('/webhooks', { url: slow.url })))
    await Promise.all(Array.from({ length: 8 }, async () => await send(ada)))
  }
  // No request to the slow receivers ends before the test.
  const worker = startDeliveryWorker(t, service.app, { timeoutMs: 300_000, leaseMs: 900_000 })
  worker.wake([])
  await slow.until(80)
  const quick = await openReceiver(t)
  const bob = await service.openAccount()
  await bob.post('/webhooks', { url: quick.url })
  for (let i = 0; i < 20; i++) await send(bob)
  worker.wake([])
  await quick.until(20)
  t.equal(slow.open, 80, 'all requests to the slow receivers are still in flight')
  t.equal(slow.most, 80, 'a slow receiver gets one request at a time')
})

t.test('the request slots are shared between accounts', async (t) => {
  const slots = createRequestSlots()
  t.equal(slots.freeFor(1), 100)
  for (let i = 0; i < 100; i++) slots.take(1)
  t.equal(slots.freeFor(1), 0, 'its own share and all that is shared')
  t.equal(slots.freeFor(2), 20, 'each account has a share')
  for (let account = 2; account <= 20; account++) for (let i = 0; i < 20; i++) slots.take(account)
  t.equal(slots.freeFor(20), 0)
  t.equal(slots.freeFor(21), 20, 'also beside 20 accounts')
  for (let i = 0; i < 20; i++) slots.take(21)
  t.equal(slots.freeFor(22), 0, '500 in all')

  const resumed: string[] = []
  const wait = (account: number, name: string): void => { slots.wait(account, () => { resumed.push(name) }) }
  wait(22, '22 first')
  wait(22, '22 second')
  wait(23, '23')
  slots.free(21)
  t.same(resumed, ['22 first', '23'], 'accounts take turns')
  slots.free(21)
  t.same(resumed, ['22 first', '23', '22 second'])
})

t.test('steps that end deliveries take turns, with pauses between them', async (t) => {
  const pace = createEndingPace()
  const waits = [1_000, 1_000, 2_000].map((durationMs) => Math.round(pace.reserve(durationMs) / 1_000))
  t.same(waits, [3, 6, 12])
})
