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

  await t.test('a delay extends the lease of its delivery, and a moved clock leaves it alone', async (t) => {
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
    t.equal(await leaseEnd(), before)
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

  await t.test('redirect: a 302 in place of the call, which counts as a failed attempt', async (t) => {
    const setting = await prepare()
    const { ada, receiver, webhookId } = setting
    const location = 'https://example.com/moved'
    await newFault(ada, { operation: 'webhook', effect: { type: 'redirect', location } })
    await send(setting)
    await makeRetryDue(setting)
    await receiver.until(1)
    await eventually(async () => (await attemptsOf(setting)).length === 2)
    t.match(await attemptsOf(setting), [{ status: 204 }, { status: 302, nextTryAt: String }])
    const { body } = await ada.get(`/webhooks/${webhookId}/attempts/1`)
    t.same(body.answer, { fields: [{ name: 'location', value: location }], body: '', truncated: false })
    t.notOk('request' in body, 'the receiver was not called')
    t.equal(receiver.received.length, 1)
  })

  const idsOf = ({ receiver }: Setting): number[] => receiver.received.map(({ event }) => event.id)

  async function untilHits ({ ada }: Setting, count: number): Promise<void> {
    await eventually(async () => (await ada.get('/events?limit=100')).body
      .filter(({ type }: any) => type === 'fault.hit').length === count)
  }

  await t.test('reorder: the next event goes first, and pairs change places', async (t) => {
    const setting = await prepare()
    const { ada, receiver } = setting
    await newFault(ada, { operation: 'webhook', effect: { type: 'reorder' }, times: 2 })
    for (let pair = 1; pair <= 2; pair++) {
      await send(setting)
      await untilHits(setting, pair)
      t.equal(receiver.received.length, 2 * (pair - 1), 'the event is held')
      await send(setting)
      await receiver.until(2 * pair)
    }
    const [second, first, fourth, third] = idsOf(setting) as [number, number, number, number]
    t.ok(first < second && second < third && third < fourth, idsOf(setting).join())
    await eventually(async () => (await attemptsOf(setting)).length === 4)
    const statuses = (await attemptsOf(setting)).map(({ status }) => status)
    t.same(statuses, [204, 204, 204, 204], 'to be held is no attempt')
  })

  await t.test('reorder: the event that goes first meets the other faults', async (t) => {
    const setting = await prepare()
    const { ada, receiver } = setting
    await newFault(ada, { operation: 'webhook', effect: { type: 'reorder' }, times: 2 })
    await newFault(ada, { operation: 'webhook', effect: { type: 'corrupt', how: 'duplicate' } })
    await newFault(ada, { operation: 'webhook', effect: { type: 'reset' } })
    await send(setting)
    await untilHits(setting, 1)
    await send(setting)
    await receiver.until(3)
    const [second, again, first] = idsOf(setting) as [number, number, number]
    t.ok(second === again && first < second, idsOf(setting).join())
    t.match((await ada.get('/lab/faults')).body, [{ hits: 1 }, { hits: 0 }])
    await send(setting)
    await untilHits(setting, 3)
    await send(setting)
    await untilHits(setting, 4)
    t.equal(receiver.received.length, 3, 'an event that is not sent lets none follow')
    await send(setting)
    await receiver.until(5)
    const [fifth, third] = idsOf(setting).slice(3) as [number, number]
    t.ok(third < fifth, idsOf(setting).join())
  })

  await t.test('reorder: events that are sent together', async (t) => {
    const setting = await prepare()
    await send(setting)
    await setting.receiver.until(1)
    await newFault(setting.ada, { operation: 'webhook', effect: { type: 'reorder' } })
    await Promise.all([send(setting), send(setting), send(setting)])
    await setting.receiver.until(4)
    t.not(idsOf(setting)[1], Math.min(...idsOf(setting).slice(1)))
    t.equal(new Set(idsOf(setting)).size, 4)
  })

  await t.test('reorder: without a next event, an event is held for 10 seconds of the clock', async (t) => {
    const setting = await prepare()
    await newFault(setting.ada, { operation: 'webhook', effect: { type: 'reorder' } })
    await send(setting)
    await untilHits(setting, 1)
    await setting.ada.post('/lab/clock/advance', { seconds: 11 })
    await setting.receiver.until(1)
    t.equal(setting.receiver.received.length, 1)
  })

  await t.test('reorder and redirect are for webhooks alone', async (t) => {
    const { ada } = await prepare()
    for (const effect of [{ type: 'reorder' }, { type: 'redirect', location: '/' }]) {
      const { status, body } = await ada.post('/lab/faults', { operation: 'placeOrder', effect })
      t.match([status, body.message], [400, /reorder and redirect need "operation": "webhook"/])
    }
    for (const location of ['', 'a b', 'a\r\nb', 'ä']) {
      const effect = { type: 'redirect', location }
      t.equal((await ada.post('/lab/faults', { operation: 'webhook', effect })).status, 400, location)
    }
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
