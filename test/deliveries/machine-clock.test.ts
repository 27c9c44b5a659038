import t from 'tap'
import type { Commit } from '../../src/database/group-commit/committer.ts'
import { claimDeliveries } from '../../src/deliveries/claim.ts'
import { createWebhookDispatcher } from '../../src/deliveries/webhook-dispatcher.ts'
import { attemptsOf, becomes, DELIVERING, send, subscribed } from '../support/delivery.ts'
import { setClockAhead, setClockBack } from '../support/machine-clock.ts'
import { eventually } from '../support/receiver.ts'
import { dispatchContext } from './workers.ts'

// Receivers verify no signature: they would compare its time, which is real, with the clock that was set.

t.test('deliveries go on when the clock of the machine is set back', async (t) => {
  const { ada, service, receiver } = await subscribed(t)
  const bob = await service.openAccount()
  receiver.secrets = []
  await becomes(ada, await send(ada), 'delivered')
  setClockBack(t)
  await becomes(bob, await send(bob), 'delivered')
  const before = receiver.received.length
  await becomes(ada, await send(ada), 'delivered')
  t.ok(receiver.received.length > before)
})

for (const [direction, step] of Object.entries({ back: setClockBack, ahead: setClockAhead })) {
  t.test(`an attempt lasts as long as its request when the clock is set ${direction}`, async (t) => {
    const { ada, receiver, path } = await subscribed(t, { events: ['message.created'] })
    receiver.secrets = []
    receiver.respond = (response) => {
      step(t)
      response.writeHead(204).end()
    }
    const began = performance.now()
    await becomes(ada, await send(ada), 'delivered')
    const limit = performance.now() - began
    const [{ durationMs }] = await attemptsOf(ada, path)
    t.ok(durationMs >= 0 && durationMs <= Math.ceil(limit), `${durationMs} ms`)
  })
}

t.test('a dispatcher resumes after its pause although the clock of the machine is set back', async (t) => {
  const { service: { app }, ada, receiver, path } = await subscribed(
    t, { events: ['message.created'] }, { ...DELIVERING, DELIVERY: 'false' })
  receiver.secrets = []
  let isDown = true
  let pauses = 0
  const commit = (async (command, input, context) => {
    if (command.name === claimDeliveries.name && isDown) throw new Error('the database is away')
    return await app.commit(command, input, context)
  }) as Commit
  const context = { ...dispatchContext(t, app, 0), commit, schedulePollWithin () { pauses++ } }
  const webhook = { webhookId: Number(path.split('/').at(-1)), account: ada.account! }
  const dispatcher = createWebhookDispatcher(webhook, context, () => {})
  dispatcher.notify(false)
  await eventually(() => pauses === 1)
  isDown = false
  setClockBack(t)
  await send(ada)
  await eventually(() => {
    dispatcher.notify(false)
    return receiver.received.length > 0
  })
  t.equal(receiver.received.length, 1)
})
