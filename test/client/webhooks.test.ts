// Only on SQLite: calls the service over HTTP; no statement decides what a client does.

import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { createClient, verifyWebhook, WebhookVerificationError } from '../../src/client/client.ts'
import { startApp } from '../support/app.ts'
import { DELIVERING } from '../support/delivery.ts'
import { eventually } from '../support/receiver.ts'

t.test('a webhook is verified', async (t) => {
  const received: Array<{ body: string, headers: IncomingMessage['headers'] }> = []
  const server = createServer(async (request, response) => {
    received.push({ body: await text(request), headers: request.headers })
    response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => { await new Promise((resolve) => server.close(resolve)) })

  const { port } = await startApp(t, DELIVERING)
  const url = `http://127.0.0.1:${port}`
  const { apiKey } = await createClient({ url }).createAccount({ name: 'A store' })
  const store = createClient({ url, apiKey })
  const { id, secret } = await store.createWebhook({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  const message = await store.createMessage({ message: 'Hello' })
  await eventually(() => received.length >= 1)
  await store.testWebhook(id)
  await eventually(() => received.some(({ body }) => body.includes('webhook.test')))

  const { body, headers } = received[0]!
  const event = verifyWebhook({ secret, body, headers })
  t.match(event, { id: 1, type: 'message.created', data: { message: { id: message.id } } })
  if (event.type === 'message.created') t.equal(event.data.message.message, 'Hello', 'the type narrows the event')
  t.strictSame(verifyWebhook({ secret, body: Buffer.from(body), headers: new Headers(headers as {}) }), event)
  const other = `whsec_${Buffer.alloc(24).toString('base64')}`
  t.strictSame(verifyWebhook({ secret: [other, secret], body, headers }), event, 'any secret of several')
  t.strictSame(verifyWebhook({ secret: [secret, other], body, headers }), event)
  const refused: Array<Partial<Parameters<typeof verifyWebhook>[0]>> = [
    { secret: other },
    { secret: [other, other] },
    { body: body.replace('Hello', 'Hallo') },
    { headers: {} },
    { headers: { ...headers, 'webhook-timestamp': '1700000000' } }
  ]
  for (const wrong of refused) {
    t.throws(() => verifyWebhook({ secret, body, headers, ...wrong }), WebhookVerificationError, Object.keys(wrong)[0]!)
  }
  t.throws(() => verifyWebhook({ secret: [], body, headers }), /needs a secret/)
  const tested = received.find(({ body }) => body.includes('webhook.test'))!
  t.match(verifyWebhook({ secret, ...tested }), { id: 0, type: 'webhook.test', data: { webhookId: id } })

  await eventually(async () => (await store.listWebhookAttempts(id, { eventId: 1 })).length === 1)
  const [first] = await store.listWebhookAttempts(id, { eventId: 1 })
  const attempt = await store.getWebhookAttempt(id, first!.id)
  t.equal(attempt.request?.body, body)
  await t.rejects(store.getWebhookAttempt(id, undefined as unknown as number), /getWebhookAttempt needs the attemptId/)
  t.strictSame(await store.resendEvents(id, { eventId: 1 }), { queued: 1 })
})
