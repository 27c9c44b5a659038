import type { ServerResponse } from 'node:http'
import t from 'tap'
import { createRequestSlots, hostOf, type Caller } from '../../src/deliveries/request-slots.ts'
import { startApp } from '../support/app.ts'
import { DELIVERING, send } from '../support/delivery.ts'
import { eventually, openReceiver, type Receiver } from '../support/receiver.ts'
import { startDeliveryWorker } from './workers.ts'

t.test('slow receivers of some accounts do not delay the deliveries of another', { timeout: 600_000 }, async (t) => {
  const service = await startApp(t, { ...DELIVERING, DELIVERY: 'false' })
  const slowOnes: Receiver[] = []
  // Eight calls of each webhook would fill the 500 slots.
  for (let i = 0; i < 4; i++) {
    const ada = await service.openAccount()
    const slow = await openReceiver(t, () => {})
    slowOnes.push(slow)
    await Promise.all(Array.from({ length: 20 }, async () => await ada.post('/webhooks', { url: slow.url })))
    await Promise.all(Array.from({ length: 8 }, async () => await send(ada)))
  }
  // No request to the slow receivers ends before the test.
  const worker = startDeliveryWorker(t, service.app, { timeoutMs: 300_000, leaseMs: 900_000 })
  worker.wake([])
  for (const slow of slowOnes) await slow.until(20)
  const quick = await openReceiver(t)
  const bob = await service.openAccount()
  await bob.post('/webhooks', { url: quick.url })
  for (let i = 0; i < 20; i++) await send(bob)
  worker.wake([])
  await quick.until(20)
  t.same(slowOnes.map(({ open }) => open), [20, 20, 20, 20], 'all requests to them are still in flight')
  t.same(slowOnes.map(({ most }) => most), [20, 20, 20, 20], 'each webhook gets one request at a time')
})

t.test('the request slots are shared between accounts', async (t) => {
  const slots = createRequestSlots()
  const of = (account: number): Caller => ({ account, host: undefined })
  t.equal(slots.freeFor(of(1)), 100)
  for (let i = 0; i < 100; i++) slots.take(of(1))
  t.equal(slots.freeFor(of(1)), 0, 'its own share and all that is shared')
  t.equal(slots.freeFor(of(2)), 20, 'each account has a share')
  for (let account = 2; account <= 20; account++) for (let i = 0; i < 20; i++) slots.take(of(account))
  t.equal(slots.freeFor(of(20)), 0)
  t.equal(slots.freeFor(of(21)), 20, 'also beside 20 accounts')
  for (let i = 0; i < 20; i++) slots.take(of(21))
  t.equal(slots.freeFor(of(22)), 0, '500 in all')

  const resumed: string[] = []
  const wait = (account: number, name: string): void => {
    slots.wait(of(account), () => {
      resumed.push(name)
      slots.take(of(account))
    })
  }
  for (const name of ['22 first', '22 second', '22 third']) wait(22, name)
  for (const name of ['23 first', '23 second']) wait(23, name)
  for (let i = 0; i < 5; i++) slots.free(of(21))
  t.same(resumed, ['22 first', '23 first', '22 second', '23 second', '22 third'], 'accounts take turns')
})

t.test('a host gets 20 requests at once, and one of each account', async (t) => {
  const slots = createRequestSlots()
  const host = hostOf('https://example.com/hooks')
  for (const url of ['HTTPS://EXAMPLE.com.:443', 'http://example.com:443/']) t.equal(hostOf(url), host, url)
  for (const url of ['https://example.com:444', 'http://example.com/']) t.not(hostOf(url), host, url)
  const ada = { account: 1, host }
  const bob = { account: 2, host }
  for (let i = 20; i > 0; i--) {
    t.equal(slots.freeFor(ada), i)
    slots.take(ada)
  }
  t.equal(slots.freeFor(ada), 0)
  t.equal(slots.freeFor({ ...ada, host: 'other.example:443' }), 20, 'another host')
  t.equal(slots.freeFor(bob), 1, 'another account')
  slots.take(bob)
  t.equal(slots.freeFor(bob), 0)

  const resumed: string[] = []
  slots.wait(ada, () => {
    resumed.push('ada')
    slots.take(ada)
  })
  slots.wait(bob, () => { resumed.push('bob') })
  slots.free(ada)
  t.same(resumed, [], '20 are still in flight')
  slots.free(bob)
  t.same(resumed, ['ada', 'bob'], 'each account may have one')
})

t.test('webhooks of several accounts call one host 20 times at once', { timeout: 600_000 }, async (t) => {
  const service = await startApp(t, { ...DELIVERING, DELIVERY: 'false' })
  const held: ServerResponse[] = []
  const receiver = await openReceiver(t, (response) => { held.push(response) })
  for (const name of ['Ada', 'Bob']) {
    const client = await service.openAccount(name)
    await Promise.all(Array.from({ length: 20 }, async () => await client.post('/webhooks', { url: receiver.url })))
    await send(client)
  }
  // No request ends before the test answers it.
  const worker = startDeliveryWorker(t, service.app, { timeoutMs: 300_000, leaseMs: 900_000 })
  worker.wake([])
  for (let answered = 0; answered < 40; answered++) {
    await eventually(() => held.length > answered)
    held[answered]!.writeHead(204).end()
  }
  t.ok(receiver.most >= 2 && receiver.most <= 21, `${receiver.most} at once`)
})
