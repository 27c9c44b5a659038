import t from 'tap'
import { eraseRows } from '../../src/accounts/erasure.ts'
import { startApp, type Client } from '../support/app.ts'
import { assertError, assertListed, assertRejectsInput, assertResponse } from '../support/checks.ts'
import { attemptsOf, becomes, DELIVERING, send } from '../support/delivery.ts'
import { ifNoneMatch } from '../contract/fields.ts'
import { eventually, openReceiver, type Receiver } from '../support/receiver.ts'

const MEGABYTE = 1_048_576

interface Setting { ada: Client, receiver: Receiver, path: string, secret: string, webhookId: number }

t.test('attempts', async (t) => {
  const { app, openAccount } = await startApp(t, DELIVERING)

  async function prepare (): Promise<Setting> {
    const ada = await openAccount()
    const receiver = await openReceiver(t)
    const { body: { id, secret } } = await ada.post('/webhooks', { url: receiver.url, events: ['message.created'] })
    return { ada, receiver, path: `/webhooks/${id}`, secret, webhookId: id }
  }

  /** Sends a test, and waits for the attempt. */
  async function sendTest ({ ada, path }: Setting): Promise<any> {
    const newest = async (): Promise<any> => (await attemptsOf(ada, path))[0]
    const before = (await newest())?.id
    await ada.post(`${path}/test`, undefined)
    await eventually(async () => (await newest())?.id !== before)
    return await newest()
  }

  /** Inserts attempts before the first one. */
  async function insertAttempts (
    { ada, webhookId }: Setting, count: number, bytes = 100
  ): Promise<void> {
    const { webhookAttempt, webhook } = app.database.prisma
    await webhookAttempt.createMany({
      data: Array.from({ length: count }, (_, i) => ({
        accountId: ada.account!,
        webhookId,
        id: i + 1,
        eventId: i + 1,
        at: new Date(),
        durationMs: 1,
        status: 200 + i % 2,
        totalBytes: (i + 1) * bytes
      }))
    })
    await webhook.update({ where: { id: webhookId }, data: { attemptsMade: count, attemptBytes: count * bytes } })
  }

  await t.test('an attempt has its request and the response, without the secret', async (t) => {
    const setting = await prepare()
    const { ada, receiver, path, secret } = setting
    receiver.respond = (response) => {
      response.writeHead(503, { 'x-queue': 'full', 'set-cookie': ['a=1', 'b=2'] }).end('Für später: \u0007')
    }
    await becomes(ada, await send(ada), 'processing')
    const [listed] = await attemptsOf(ada, path)
    t.match(listed, { id: 1, eventId: 1, status: 503, nextTryAt: String })
    t.same(Object.keys(listed).filter((name) => ['request', 'answer'].includes(name)), [])
    const detail = await ada.get(`${path}/attempts/1`)
    const [{ headers, body }] = receiver.received as [Receiver['received'][0]]
    const { request, answer } = detail.body
    assertResponse(t, detail, 200, { ...listed, request, answer })
    t.same([request.url, request.body], [receiver.url, body])
    for (const { name, value } of request.fields) t.equal(value, headers[name], name)
    for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature', 'content-type', 'user-agent']) {
      t.ok(request.fields.some((field: { name: string }) => field.name === name), name)
    }
    const named = (name: string): string[] =>
      answer.fields.filter((field: any) => field.name === name).map(({ value }: any) => value)
    t.same([named('x-queue'), named('set-cookie')], [['full'], ['a=1', 'b=2']])
    t.same([answer.body, answer.truncated], ['Für später: \u0007', false])
    t.notOk(detail.text.includes(secret.slice('whsec_'.length)))
    t.equal((await ada.get(`${path}/attempts/1`, ifNoneMatch(detail.headers.etag))).status, 304)
    await app.database.prisma.event.deleteMany({ where: { accountId: ada.account! } })
    const later = await ada.get(`${path}/attempts/1`, ifNoneMatch(detail.headers.etag))
    assertResponse(t, later, 200, { ...listed, request: { url: request.url, fields: request.fields }, answer })
  })

  await t.test('a test has its body, and an attempt without a response no answer', async (t) => {
    const setting = await prepare()
    const { ada, receiver, path, webhookId } = setting
    await sendTest(setting)
    t.match(JSON.parse((await ada.get(`${path}/attempts/1`)).body.request.body),
      { id: 0, type: 'webhook.test', data: { webhookId } })
    await receiver.close()
    await sendTest(setting)
    const { body } = await ada.get(`${path}/attempts/2`)
    t.match(body, { id: 2, eventId: 0, error: 'The address refused the connection', request: { url: receiver.url } })
    t.notOk('answer' in body)
  })

  await t.test('they are those of one webhook of one account', async (t) => {
    const setting = await prepare()
    const { ada, path } = setting
    await sendTest(setting)
    const { body: { id: other } } = await ada.post('/webhooks', { url: 'http://example.com/' })
    assertError(t, await ada.get(`/webhooks/${other}/attempts/1`), 404, 'attempt_not_found')
    assertError(t, await ada.get(`${path}/attempts/2`), 404, 'attempt_not_found')
    assertError(t, await ada.get('/webhooks/999999/attempts/1'), 404, 'webhook_not_found')
    const eve = await openAccount()
    assertError(t, await eve.get(`${path}/attempts/1`), 404, 'webhook_not_found')
    assertError(t, await eve.get(`${path}/attempts`), 404, 'webhook_not_found')
  })

  await t.test('they are listed newest first, in pages, by event and by status', async (t) => {
    const setting = await prepare()
    const { ada, path } = setting
    await insertAttempts(setting, 5)
    assertListed(t, await ada.get(`${path}/attempts`), [5, 4, 3, 2, 1])
    const first = await ada.get(`${path}/attempts?limit=2`)
    assertListed(t, first, [5, 4])
    const [, next] = /<([^>]+)>; rel="next"/.exec(String(first.headers.link))!
    const second = await ada.get(next!)
    assertListed(t, second, [3, 2])
    assertListed(t, await ada.get(/<([^>]+)>; rel="next"/.exec(String(second.headers.link))![1]!), [1])
    assertListed(t, await ada.get(`${path}/attempts?status=201`), [4, 2])
    assertListed(t, await ada.get(`${path}/attempts?eventId=3`), [3])
    assertListed(t, await ada.get(`${path}/attempts?eventId=3&status=201`), [])
    await assertRejectsInput(t, async (query: unknown) => await ada.get(`${path}/attempts?${String(query)}`), [
      ['eventId=-1', 'eventId'],
      ['status=99', 'status must be 100 or more'],
      ['status=600', 'status must be 599 or less'],
      ['limit=0', 'limit must be 1 or more'],
      ['sort=id', '"sort" is not allowed'],
      ['cursor=-', 'cursor must']
    ])
  })

  await t.test('the last 1,000 are kept', async (t) => {
    const setting = await prepare()
    const { ada, path } = setting
    await insertAttempts(setting, 1_000)
    t.match(await sendTest(setting), { id: 1_001 })
    assertError(t, await ada.get(`${path}/attempts/1`), 404, 'attempt_not_found')
    t.equal((await ada.get(`${path}/attempts/2`)).status, 200)
    t.equal(await app.database.prisma.webhookAttempt.count({ where: { accountId: ada.account! } }), 1_000)
  })

  await t.test('the oldest go when a webhook has more than 2 MB of them', async (t) => {
    const setting = await prepare()
    const { ada, receiver } = setting
    await insertAttempts(setting, 100, MEGABYTE / 16)
    receiver.respond = (response) => {
      response.writeHead(200, { 'x-large': 'x'.repeat(8_000) }).end('y'.repeat(8_000))
    }
    t.match(await sendTest(setting), { id: 101 })
    const left = await app.database.prisma.webhookAttempt.findMany({
      where: { accountId: ada.account! }, orderBy: { id: 'asc' }
    })
    const [first] = left
    const bytes = left.at(-1)!.totalBytes - first!.totalBytes
    t.ok(bytes <= 2 * MEGABYTE && bytes > 1.9 * MEGABYTE, `${bytes} bytes in ${left.length}`)
  })

  await t.test('what a receiver sends is bounded, whatever it is', async (t) => {
    const setting = await prepare()
    const { ada, receiver, path } = setting
    const answerTo = async (respond: Receiver['respond']): Promise<any> => {
      receiver.respond = respond
      const { id } = await sendTest(setting)
      return (await ada.get(`${path}/attempts/${id}`)).body.answer
    }
    const many = await answerTo((response) => {
      response.writeHead(200, Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x-${i}`, 'v'.repeat(100)]))).end()
    })
    const size = (fields: any[]): number => fields.reduce((sum, { name, value }) => sum + name.length + value.length, 0)
    t.same([size(many.fields), many.truncated], [4_096, true])
    const giant = await answerTo((response) => { response.writeHead(200, { 'x-giant': 'g'.repeat(12_000) }).end() })
    t.same([size(giant.fields), giant.truncated], [4_096, true])
    const long = await answerTo((response) => { response.writeHead(200).end('ä'.repeat(5_000)) })
    t.same([long.body, long.truncated], ['ä'.repeat(2_048), true])
    const bytes = Buffer.from([0, 255, 254, 0x41, 0xe2, 0x82])
    const binary = await answerTo((response) => { response.writeHead(200).end(bytes) })
    t.same([binary.body, binary.truncated], ['\u0000\ufffd\ufffdA', false])
    // A body without an end is read for a second.
    const slow = await answerTo((response) => { response.writeHead(200).write('slow') })
    t.same([slow.body, slow.truncated], ['slow', true])
    const cut = await answerTo((response) => {
      response.writeHead(200, { 'content-length': 100 }).write('cut')
      setTimeout(() => { response.destroy() }, 50)
    })
    t.same([cut.body, cut.truncated], ['cut', true])
  })

  await t.test('deleting the account erases them', async (t) => {
    const setting = await prepare()
    await sendTest(setting)
    const { ada } = setting
    t.equal((await ada.delete('/account')).status, 204)
    const from = { account: ada.account!, position: { tables: 0, after: 0 } }
    t.equal((await app.commit(eraseRows, from, { account: null })).record.state, 'erased')
  })
})
