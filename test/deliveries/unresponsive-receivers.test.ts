// Only on SQLite: calls receivers that hang; the delivery tests run the statements.

import t from 'tap'
import { attemptsOf, becomes, DELIVERING, send, subscribed } from '../support/delivery.ts'
import { eventually, openReceiver } from '../support/receiver.ts'
import { keepWaking, startDeliveryWorker } from './workers.ts'

/** Longer than the second after which a receiver is slow. */
const TIMEOUT_MS = 1_500

t.test('a receiver that hangs, or responds without end, delays no other', { timeout: 300_000 }, async (t) => {
  const { service, ada, receiver, path } = await subscribed(
    t, { events: ['message.created'] }, { ...DELIVERING, DELIVERY: 'false' })
  // No request to the receiver that hangs ends before the worker.
  const worker = startDeliveryWorker(t, service.app, { timeoutMs: 300_000, leaseMs: 900_000 })
  keepWaking(t, worker)
  receiver.respond = () => {}
  const endless = await openReceiver(t, (response) => {
    response.writeHead(200)
    const more = setInterval(() => { response.write('x'.repeat(100_000)) }, 1)
    response.on('close', () => { clearInterval(more) })
  })
  const slow = await openReceiver(t, (response) => {
    response.writeHead(200)
    const more = setInterval(() => { response.write('x') }, 100)
    response.on('close', () => { clearInterval(more) })
  })
  await ada.post('/webhooks', { url: endless.url })
  await ada.post('/webhooks', { url: slow.url, events: ['message.created'] })
  const ids = await Promise.all(Array.from({ length: 4 }, async () => await send(ada)))
  const bob = await service.openAccount()
  const message = await send(bob)
  await becomes(bob, message, 'delivered')
  t.same((await attemptsOf(ada, path)), [], 'before a request to the receiver that hangs has ended')
  await endless.until(4)
  await slow.until(4)
  t.equal(new Set(endless.received.map(({ id }) => id)).size, endless.received.length, 'accepted by its status')
  t.equal(receiver.open, 1)
  await worker.close()
  keepWaking(t, startDeliveryWorker(t, service.app, { timeoutMs: TIMEOUT_MS }))
  await becomes(ada, ids[0]!, 'processing')
  await eventually(async () => (await attemptsOf(ada, path)).length >= 2)
  const error = `There was no response within ${TIMEOUT_MS / 1_000} seconds`
  t.match((await attemptsOf(ada, path)), [{ error, durationMs: Number }])
  t.equal(receiver.most, 1, 'it gets one request at a time')
})
