import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Commit } from '../../src/database/group-commit/committer.ts'
import { createWebhookDispatcher } from '../../src/deliveries/webhook-dispatcher.ts'
import { backlog, DELIVERING, send, subscribed } from '../support/delivery.ts'
import { eventually } from '../support/receiver.ts'
import { dispatchContext } from './workers.ts'

const webhookIdOf = (path: string): number => Number(path.split('/').at(-1))

t.test('dispatchers that claimed more than the free slots send the rest as soon as slots are free', async (t) => {
  const { service, ada, receiver, path } = await subscribed(
    t, { events: ['message.created'] }, { ...DELIVERING, DELIVERY: 'false' })
  const { body: { id: other } } = await ada.post('/webhooks', { url: receiver.url, events: ['message.created'] })
  receiver.secrets = []
  receiver.respond = (response) => { setTimeout(() => { response.writeHead(204).end() }, 20) }
  for (let i = 0; i < 8; i++) await send(ada)
  // All but 8 of the 500 request slots are in use.
  const context = dispatchContext(t, service.app, 492)
  const account = ada.account!
  for (const webhookId of [webhookIdOf(path), other]) {
    createWebhookDispatcher({ webhookId, account }, context, () => {}).notify(false)
  }
  await receiver.until(16)
  t.ok(receiver.most <= 8, `${receiver.most} at a time`)
})

t.test('a dispatcher ends when nothing is left, also after its receiver responded with 410', async (t) => {
  for (const status of [204, 410]) {
    const { service: { app }, ada, receiver, path } = await backlog(t, 3)
    receiver.respond = (response) => { response.writeHead(status).end() }
    let ends = 0
    const webhook = { webhookId: webhookIdOf(path), account: ada.account! }
    // On a busy machine any receiver can take a second. The dispatcher of a slow one stays.
    const context = { ...dispatchContext(t, app, 0), slowMs: 600_000 }
    const dispatcher = createWebhookDispatcher(webhook, context, () => { ends++ })
    dispatcher.notify(false)
    await receiver.until(1)
    await eventually(
      async () => ends > 0,
      undefined,
      () => `the dispatcher of a receiver that responds ${status} stays`
    )
    await sleep(500)
    t.equal(ends, 1, `after ${status}, once`)
  }
})

t.test('a dispatcher that has ended does nothing when a slot that it waited for is free', async (t) => {
  const { service: { app }, ada, path } = await subscribed(t, {}, { ...DELIVERING, DELIVERY: 'false' })
  const { body: { id: other } } = await ada.post('/webhooks', { url: 'https://example.com/' })
  const context = dispatchContext(t, app, 500)
  const stranger = { account: -1, host: undefined }
  const ends = [0, 0]
  const [first, second] = [webhookIdOf(path), other].map((webhookId, i) =>
    createWebhookDispatcher({ webhookId, account: ada.account! }, context, () => { ends[i]!++ }))
  first!.notify(false)
  second!.notify(false)
  // The only free slot is offered to the first one, which has nothing to send.
  context.slots.free(stranger)
  await eventually(() => ends[0] === 1)
  second!.notify(false)
  await eventually(() => ends[1] === 1)
  context.slots.take(stranger)
  context.slots.free(stranger)
  t.same(ends, [1, 1])
})

t.test('a test does not make the dispatcher of a disabled webhook look for expired deliveries', async (t) => {
  const { service: { app }, ada, receiver, path } = await backlog(t, 1)
  await ada.patch(path, { enabled: false })
  const ran: string[] = []
  const commit = (async (command, input, context) => {
    ran.push(command.name)
    return await app.commit(command, input, context)
  }) as Commit
  const context = { ...dispatchContext(t, app, 0), commit, slowMs: 600_000 }
  let ends = 0
  const dispatcher = createWebhookDispatcher(
    { webhookId: webhookIdOf(path), account: ada.account! }, context, () => { ends++ })
  await ada.post(`${path}/test`, undefined)
  dispatcher.notify(false)
  await receiver.until(1)
  await eventually(() => ends === 1)
  t.same(ran, ['claimDeliveries', 'claimDeliveries'])
})
