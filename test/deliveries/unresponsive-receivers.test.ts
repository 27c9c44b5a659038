import t from 'tap'
import { becomes, send, subscribed } from '../support/delivery.ts'
import { eventually, openReceiver } from '../support/receiver.ts'

t.test('a receiver that hangs, or answers without end, holds up nobody else', { timeout: 90_000 }, async (t) => {
  const { service, ada, receiver, path } = await subscribed(t, { events: ['message.created'] })
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
  const ids = await Promise.all(Array.from({ length: 20 }, async () => await send(ada)))
  const bob = await service.openAccount()
  const began = Date.now()
  await becomes(bob, await send(bob), 'delivered')
  t.ok(Date.now() - began < 2_000, `${Date.now() - began} ms`)
  await endless.until(20)
  await slow.until(20, 30_000)
  t.equal(new Set(endless.received.map(({ id }) => id)).size, endless.received.length, 'taken for what its status says')
  await becomes(ada, ids[0]!, 'processing')
  await eventually(async () => (await ada.get(path)).body.attempts.length >= 8, 30_000)
  t.match((await ada.get(path)).body.attempts, [{ error: 'There was no answer within 15 seconds', durationMs: Number }])
  await eventually(() => receiver.open <= 1, 5_000)
  t.equal(receiver.most, 8, 'then it is tried with one call at a time')
})
