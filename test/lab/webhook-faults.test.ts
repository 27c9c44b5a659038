import t from 'tap'
import { Webhook } from 'standardwebhooks'
import { startApp, type Client, type TestApp } from '../support/app.ts'
import { eventually, openReceiver, type Receiver } from '../support/receiver.ts'
import { newFault } from './fixture.ts'

interface Setting { running: TestApp, ada: Client, receiver: Receiver, webhookId: number, secret: string }

t.test('faults of webhooks', async (t) => {
  const running = await startApp(t, { DELIVERY: 'true', WEBHOOKS_ALLOW_PRIVATE: 'true' })

  async function prepare (): Promise<Setting> {
    const ada = await running.openAccount()
    const receiver = await openReceiver(t)
    const { body: { id, secret } } = await ada.post('/webhooks', { url: receiver.url, events: ['message.created'] })
    return { running, ada, receiver, webhookId: id, secret }
  }

  const attemptsOf = async ({ ada, webhookId }: Setting): Promise<any[]> =>
    (await ada.get(`/webhooks/${webhookId}/attempts`)).body

  async function send ({ ada }: Setting): Promise<void> {
    await ada.post('/messages', { message: 'Hello' })
  }

  /** Makes a retry due that waits for some seconds. */
  async function makeRetryDue (setting: Setting): Promise<void> {
    await eventually(async () => (await attemptsOf(setting)).length > 0)
    await setting.ada.post('/lab/clock/advance', { seconds: 60 })
  }

  await t.test('lose_answer: the receiver accepted, and is called again', async (t) => {
    const setting = await prepare()
    await newFault(setting.ada, { operation: 'webhook', effect: { type: 'lose_answer' } })
    await send(setting)
    await setting.receiver.until(1)
    await makeRetryDue(setting)
    await setting.receiver.until(2)
    const [first, second] = setting.receiver.received
    t.same(second!.event, first!.event)
    t.equal(second!.id, first!.id, 'a duplicate, which the receiver recognizes')
    await eventually(async () => (await attemptsOf(setting)).length === 2)
    t.match((await attemptsOf(setting))[1], { error: /lost the response/ })
  })

  await t.test('reset: the call is not made, and counts as a failed attempt', async (t) => {
    const setting = await prepare()
    await newFault(setting.ada, { operation: 'webhook', effect: { type: 'reset' } })
    await send(setting)
    await makeRetryDue(setting)
    await setting.receiver.until(1)
    await eventually(async () => (await attemptsOf(setting)).length === 2)
    const [last, failed] = await attemptsOf(setting)
    t.match(failed, { error: /prevented the request/ })
    t.match(last, { status: 204 })
    t.equal(setting.receiver.received.length, 1)
  })

  await t.test('the event of a hit comes after those of the attempt', async (t) => {
    for (const [effect, ended] of [
      [{ type: 'reset' }, 'message.processing'], [{ type: 'lose_answer' }, 'message.processing'],
      [{ type: 'delay', ms: 1 }, 'message.delivered']
    ] as const) {
      const setting = await prepare()
      await newFault(setting.ada, { operation: 'webhook', effect })
      await send(setting)
      const types = async (): Promise<string[]> =>
        (await setting.ada.get('/events')).body.map(({ type }: { type: string }) => type)
      await eventually(async () => (await types()).length === 3)
      t.same(await types(), ['message.created', ended, 'fault.hit'], effect.type)
    }
  })

  await t.test('a delay extends the lease of its delivery, and a moved clock shifts it', async (t) => {
    const setting = await prepare()
    const { ada: { account: accountId }, ada } = setting
    await newFault(ada, { operation: 'webhook', effect: { type: 'delay', ms: 60_000 } })
    await send(setting)
    const leaseEnd = async (): Promise<number> =>
      (await running.app.database.prisma.delivery.findFirst({ where: { accountId: accountId! } }))!.nextTryAt.getTime()
    // A lease of 45 s would end before the call.
    await eventually(async () => await leaseEnd() > Date.now() + 60_000, 20_000, () => 'the lease ends before the call')
    const before = await leaseEnd()
    await ada.post('/lab/clock/advance', { seconds: 3_600 })
    t.equal(await leaseEnd() - before, 3_600_000)
  })

  await t.test('delay: the call is made later', async (t) => {
    const setting = await prepare()
    await newFault(setting.ada, { operation: 'webhook', effect: { type: 'delay', ms: 500 } })
    const began = Date.now()
    await send(setting)
    await setting.receiver.until(1)
    t.ok(Date.now() - began >= 490)
  })

  await t.test('corrupt: a bad signature, an old timestamp, a duplicate', async (t) => {
    const setting = await prepare()
    const { receiver, secret, ada } = setting
    const verify = (n: number): boolean => {
      const { event, headers } = receiver.received[n]!
      try {
        new Webhook(secret).verify(JSON.stringify(event), headers as Record<string, string>)
        return true
      } catch {
        return false
      }
    }
    for (const how of ['bad_signature', 'old_timestamp', 'duplicate']) {
      const before = receiver.received.length
      await newFault(ada, { operation: 'webhook', effect: { type: 'corrupt', how } })
      await send(setting)
      await receiver.until(before + (how === 'duplicate' ? 2 : 1))
      t.equal(verify(before), how === 'duplicate', how)
      if (how === 'old_timestamp') {
        const { headers } = receiver.received[before]!
        t.ok(Date.now() / 1_000 - Number(headers['webhook-timestamp']) > 300)
      }
      if (how === 'duplicate') t.equal(receiver.received[before]!.id, receiver.received[before + 1]!.id)
    }
    await eventually(async () => (await ada.get('/events?limit=100')).body
      .filter(({ type }: any) => type === 'fault.hit').length === 3)
  })

  await t.test('the event of a hit is delivered, and never hit itself', async (t) => {
    const ada = await running.openAccount()
    const receiver = await openReceiver(t)
    await ada.post('/webhooks', { url: receiver.url })
    await newFault(ada, { operation: 'webhook', effect: { type: 'corrupt', how: 'duplicate' }, times: 3 })
    await ada.post('/categories', { name: 'Dogs' })
    await receiver.until(3)
    const types = receiver.received.map(({ event }) => event.type).sort()
    t.same(types, ['category.created', 'category.created', 'fault.hit'])
  })
})
