// Only on SQLite: calls the service over HTTP; no statement decides what a client does.

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { Webhook } from 'standardwebhooks'
import * as client from '../../src/client/client.ts'
import { startApp } from '../support/app.ts'
import { build, ROOT } from '../support/cli.ts'

const { createClient, verifyWebhook } = client

// undici is not Node's own, but the package: its classes are others than the global ones.
const { fetch: otherFetch, Headers: OtherHeaders } = createRequire(import.meta.url)('undici') as typeof globalThis

t.test('fetch and Headers of another implementation', async (t) => {
  t.not(OtherHeaders, Headers)
  const { port } = await startApp(t)
  const url = `http://127.0.0.1:${port}`
  const { apiKey } = await createClient({ url, fetch: otherFetch }).createAccount({ name: 'A store' })
  const store = createClient({ url, fetch: otherFetch, headers: new OtherHeaders({ authorization: `Bearer ${apiKey}` }) })
  const { response } = await store.createMessage({ message: 'Hello' }).withResponse()
  t.equal(response.status, 201)
  for await (const { message } of store.listMessages()) t.equal(message, 'Hello')
  t.match((await store.followEvents().next()).value, { id: 1 })
  await t.rejects(store.getPet(1), { code: 'pet_not_found' })
  const fields = [['If-Match', '"x"']] as Array<[string, string]>
  for (const headers of [new Map(fields), fields, new OtherHeaders(fields)]) {
    await t.rejects(store.getAccount({ headers }), { code: 'precondition_failed' })
  }
})

t.test('verifyWebhook reads header fields of any form', async (t) => {
  const secret = `whsec_${Buffer.from('a secret of some bytes').toString('base64')}`
  const body = JSON.stringify({ id: 0, type: 'webhook.test', timestamp: '', data: { webhookId: 1 } })
  const fields = {
    'Webhook-Id': 'evt_1_0',
    'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
    'webhook-signature': new Webhook(secret).sign('evt_1_0', new Date(), body)
  }
  const lists = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, [value]]))
  const global = new Headers(fields)
  const forms = {
    plain: fields,
    lists,
    'several signatures': { ...lists, 'webhook-signature': ['v1,bm8=', fields['webhook-signature']] },
    'Headers of Node': global,
    'Headers of undici': new OtherHeaders(fields),
    'a Map': new Map(Object.entries(fields)),
    pairs: Object.entries(fields),
    'only get': { get: (name: string) => global.get(name) }
  }
  for (const [name, headers] of Object.entries(forms)) {
    t.match(verifyWebhook({ secret, body, headers }), { id: 0 }, name)
  }
  const bytes = new TextEncoder().encode(body)
  t.match(verifyWebhook({ secret, body: bytes.buffer, headers: fields }), { id: 0 })
  t.throws(() => verifyWebhook({ secret, body: JSON.parse(body), headers: fields }), /as it was received/)
  t.throws(() => verifyWebhook({ secret: undefined as unknown as string, body, headers: fields }), /needs a secret/)
  t.throws(() => verifyWebhook({ secret, body, headers: undefined as unknown as Headers }), TypeError)
})

t.test('a character that two chunks of the feed share is one character', async (t) => {
  const event = { id: 1, type: 'category.created', timestamp: '', data: { category: { id: 1, name: 'Hündchen 🐕' } } }
  const bytes = new TextEncoder().encode(`id: 1\nevent: category.created\ndata: ${JSON.stringify(event)}\n\n`)
  const broken: number[] = []
  for (let at = 0; at <= bytes.length; at++) {
    const chunks = [bytes.subarray(0, at), bytes.subarray(at)]
    const body = new ReadableStream({ start (controller) { for (const chunk of chunks) controller.enqueue(chunk) } })
    const headers = { 'content-type': 'text/event-stream' }
    const store = createClient({ url: 'http://pets.example', fetch: async () => new Response(body, { headers }) })
    const { value } = await store.followEvents().next()
    if (JSON.stringify(value) !== JSON.stringify(event)) broken.push(at)
  }
  t.same(broken, [], 'the bytes after which a chunk may not end')
})

t.test('an error of another copy of the package is recognized', async (t) => {
  build()
  const file = pathToFileURL(join(ROOT, 'dist/client/client.js')).href
  const copy = await import(file) as typeof client
  t.not(copy.PetstoreError, client.PetstoreError)
  const answer = JSON.stringify({ code: 'unauthorized', message: 'No key', status: 401 })
  const answering = (text: string) => createClient({
    url: 'http://pets.example', retries: 0, fetch: async () => new Response(text, { status: 401 })
  })
  const [known, unknown] = await Promise.all([answer, '<html>'].map(async (text) =>
    await answering(text).getAccount().catch((error: unknown) => error)))
  for (const { PetstoreError, ConnectionError, RedirectError } of [client, copy]) {
    t.ok(known instanceof PetstoreError && !(known instanceof ConnectionError))
    t.ok(unknown instanceof ConnectionError && !(unknown instanceof PetstoreError || unknown instanceof RedirectError))
    t.ok(new RedirectError(301, undefined) instanceof client.ConnectionError)
    class Special extends PetstoreError {}
    t.notOk(known instanceof Special)
    for (const value of [new Error('another'), null, 'text', {}]) t.notOk(value as object instanceof PetstoreError)
  }
  const refusal = (() => {
    try {
      return copy.verifyWebhook({ secret: 'whsec_c2VjcmV0', body: '', headers: {} })
    } catch (error) {
      return error
    }
  })()
  t.ok(refusal instanceof client.WebhookVerificationError)
})
