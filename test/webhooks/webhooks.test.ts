import t from 'tap'
import type { Document } from '../../src/openapi/document.ts'
import { startApp } from '../support/app.ts'
import { assertResponse, assertListed, assertError, assertRejectsInput } from '../support/checks.ts'
import { newWebhook } from '../support/fixtures.ts'

const URL = 'https://example.com/hooks'
/** The types of events that clients were promised, in their order. A resource can add others. */
const PROMISED = [
  'pet.created', 'pet.updated', 'pet.deleted', 'category.created', 'category.updated', 'category.deleted',
  'order.placed', 'order.updated', 'order.completed', 'order.cancelled', 'inventory.counted',
  'message.created', 'message.delivered', 'message.failed'
]
t.test('webhooks', async (t) => {
  const running = await startApp(t)
  const { app, openAccount } = running

  await t.test('one is created with a secret that is shown this once', async (t) => {
    const ada = await openAccount()
    const created = await ada.post('/webhooks', { url: URL, events: ['pet.created'], enabled: false })
    const { id, secret, createdAt } = created.body
    assertResponse(t, created, 201, { id, url: URL, events: ['pet.created'], enabled: false, createdAt, secret })
    t.match(secret, /^whsec_[A-Za-z0-9+/]{32}$/)
    t.match(created.headers, { location: `/webhooks/${id}`, etag: '"1"', 'cache-control': 'no-store' })
    const webhook = { id, url: URL, events: ['pet.created'], enabled: false, createdAt }
    assertResponse(t, await ada.get(`/webhooks/${id}`), 200, webhook)
    assertResponse(t, await ada.get(`/webhooks/${id}/attempts`), 200, [])
    assertResponse(t, await ada.get('/webhooks'), 200, [webhook])
    const { body: other } = await ada.post('/webhooks', { url: URL })
    t.equal(other.enabled, true)
    t.same(other.events.filter((type: string) => PROMISED.includes(type)), PROMISED)
    const { components } = app.swagger() as any
    t.same(other.events, components.schemas.EventType.enum, 'every type of the document')
    t.not(other.secret, secret)
    assertListed(t, await ada.get('/webhooks?sort=-id'), [other.id, id])
  })

  await t.test('input that breaks a rule is refused', async (t) => {
    const ada = await openAccount()
    const id = await newWebhook(ada)
    await assertRejectsInput(t, async (body: unknown) => await ada.post('/webhooks', body), [
      [{}, 'url is required'],
      [{ url: null }, 'url must be a string'],
      [{ url: URL, secret: 'whsec_x' }, 'is not allowed']
    ])
    for (const send of [
      async (body: object) => await ada.post('/webhooks', { url: URL, ...body }),
      async (body: object) => await ada.patch(`/webhooks/${id}`, body)
    ]) {
      await assertRejectsInput(t, send, [
        ...[
          '',
          'x',
          'ftp://example.com/',
          'example.com',
          'https://',
          'http://[::1',
          'https://exa mple.com/',
          'https://example.com/\u0000',
          'http://example.com:99999/',
          `https://example.com/${'x'.repeat(2100)}`
        ].map((url): [object, string] => [{ url }, 'url ']),
        [{ events: [] }, 'events must have at least 1 item'],
        [{ events: null }, 'events must be an array'],
        [{ events: ['pet.sold'] }, 'Each item of events must be one of'],
        [{ events: ['webhook.test'] }, 'Each item of events must be one of'],
        [{ events: ['pet.created', 'pet.created'] }, 'the same item twice'],
        [{ enabled: 'true' }, 'enabled must be a boolean'],
        [{ enabled: null }, 'enabled must be a boolean']
      ])
    }
    assertListed(t, await ada.get('/webhooks'), [id])
  })

  await t.test('a URL is a URI with a host, without user information and fragment, and is kept as sent', async (t) => {
    const ada = await openAccount()
    const id = await newWebhook(ada)
    const { components } = app.swagger() as unknown as Document
    const pattern = new RegExp(components.schemas['NewWebhook']!.properties!['url']!.pattern!, 'u')
    for (const [url, says] of [
      ['mailto:a@example.com', 'http:// or https://'],
      ['/hooks', 'http:// or https://'],
      ['//example.com/', 'http:// or https://'],
      ['http:///x', 'a host'],
      ['http://:80/', 'a host'],
      ['http://user@example.com/', 'user information'],
      ['http://user:secret@example.com/', 'user information'],
      ['http://example.com/#', 'a fragment'],
      ['http://example.com/a?b#c', 'a fragment'],
      ['http://example.com/%zz', 'RFC 3986'],
      ['http://example.com/%4', 'RFC 3986'],
      ['http://example.com/"<>', 'RFC 3986'],
      ['http://example.com\\x', 'RFC 3986'],
      ['http://example.com/a|b', 'RFC 3986'],
      ['http://example.com/[a]', 'RFC 3986'],
      ['http://example.com/ä', 'RFC 3986'],
      ['http://a:b:c/', 'host and port'],
      ['http://[v1.x]/', 'host and port'],
      ['http://example.com:65536/', 'host and port']
    ] as const) {
      // A pattern cannot express the range of ports.
      if (!url.includes(':65536')) t.notMatch(url, pattern)
      for (const answer of [await ada.post('/webhooks', { url }), await ada.patch(`/webhooks/${id}`, { url })]) {
        assertError(t, answer, 400, 'validation_failed', 'url must', url)
        t.match(answer.body.message, says)
        t.notMatch(answer.body.message, 'secret')
      }
    }
    for (const url of [
      'HTTPS://EXAMPLE.com', 'http://example.com:/', 'http://example.com?', 'http://EXAMPLE.com/%7Ea/../b//c?d=e?/f',
      'https://example.com:8443/a;b=(c)!$&\'*+,=:@~', 'https://[2606:4700::1111]:443?a=/@:?', 'http://a%61.example/-._'
    ]) {
      t.match(url, pattern)
      t.match((await ada.patch(`/webhooks/${id}`, { url })).body, { url })
      t.match((await ada.get(`/webhooks/${id}`)).body, { url })
    }
  })

  await t.test('a private address or a name of this machine is refused, in whatever spelling', async (t) => {
    const ada = await openAccount()
    const id = await newWebhook(ada)
    for (const host of [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f.0.0.1',
      '0177.0.0.1',
      '0.0.0.0',
      '10.0.0.1',
      '172.16.0.1',
      '192.168.1.1',
      '169.254.169.254',
      '100.64.0.1',
      '192.0.0.1',
      '192.0.2.1',
      '198.18.0.1',
      '198.51.100.1',
      '203.0.113.1',
      '224.0.0.1',
      '240.0.0.1',
      '255.255.255.255',
      '[::]',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:10.0.0.1]',
      '[::127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
      '[2001:0:1::]',
      '[fe80::1]',
      '[fc00::1]',
      '[fd12::1]',
      '[fec0::1]',
      '[ff02::1]',
      '[2001:db8::1]',
      '[100::1]',
      '127.0.0.1.',
      '%31%32%37.0.0.1',
      'localhost',
      'LOCALHOST.',
      'hooks.localhost',
      '%6cocalhost'
    ]) {
      assertError(
        t,
        await ada.post('/webhooks', { url: `http://${host}/` }),
        400,
        'validation_failed',
        'WEBHOOKS_ALLOW_PRIVATE=true',
        host
      )
      assertError(
        t,
        await ada.patch(`/webhooks/${id}`, { url: `HTTPS://${host}:8443/x` }),
        400,
        'validation_failed',
        'WEBHOOKS_ALLOW_PRIVATE=true',
        host
      )
    }
    for (const host of ['8.8.8.8', '[2606:4700::1111]', 'localhost.example', 'example.com:8080']) {
      t.equal((await ada.post('/webhooks', { url: `http://${host}/` })).status, 201, host)
    }
  })

  await t.test('a patch changes what it names', async (t) => {
    const ada = await openAccount()
    const { body: { secret, ...webhook } } = await ada.post('/webhooks', { url: URL })
    const path = `/webhooks/${webhook.id}`
    const changed = await ada.patch(path, { url: 'http://example.org/', events: ['pet.created', 'pet.deleted'] })
    assertResponse(t, changed, 200, { ...webhook, url: 'http://example.org/', events: ['pet.created', 'pet.deleted'] })
    t.equal(changed.headers.etag, '"2"')
    assertResponse(t, await ada.patch(path, { enabled: false }), 200, { ...changed.body, enabled: false })
    const same = await ada.patch(path, { enabled: false })
    t.equal(same.headers.etag, '"3"', 'nothing changed')
    assertResponse(t, await ada.get(path), 200, { ...changed.body, enabled: false })
    t.equal((await ada.get('/events')).headers['event-id'], '0', 'changes of webhooks are no events')
  })

  await t.test('a rotation shows the new secret', async (t) => {
    const ada = await openAccount()
    const { body: webhook } = await ada.post('/webhooks', { url: URL })
    const rotated = await ada.request('POST', `/webhooks/${webhook.id}/rotate`)
    assertResponse(t, rotated, 200, { ...webhook, secret: rotated.body.secret })
    t.not(rotated.body.secret, webhook.secret)
    t.match(rotated.headers, { etag: '"2"', 'cache-control': 'no-store' })
  })

  await t.test('a deleted one is gone', async (t) => {
    const ada = await openAccount()
    const path = `/webhooks/${await newWebhook(ada)}`
    assertResponse(t, await ada.delete(path), 204)
    for (const [method, at, body] of [
      ['GET', path],
      ['GET', `${path}/attempts`],
      ['PATCH', path, {}],
      ['DELETE', path],
      ['POST', `${path}/rotate`],
      ['POST', `${path}/test`]
    ] as Array<[method: string, path: string, body?: object]>) {
      assertError(t, await ada.request(method, at, { body }), 404, 'webhook_not_found', 'no webhook', method)
    }
  })

  await t.test('100 tests of one wait at most', async (t) => {
    const ada = await openAccount()
    const path = `/webhooks/${await newWebhook(ada)}/test`
    for (let i = 0; i < 100; i++) t.equal((await ada.request('POST', path)).status, 202)
    const answers = await Promise.all([path, path].map(async (path) => await ada.request('POST', path)))
    for (const answer of answers) assertError(t, answer, 503, 'overloaded')
    const other = `/webhooks/${await newWebhook(ada)}/test`
    t.equal((await ada.request('POST', other)).status, 202)
  })

  await t.test('an account has 20 at most, however many are asked for at once', async (t) => {
    const ada = await openAccount()
    const answers = await Promise.all(Array.from({ length: 30 }, async () => await ada.post('/webhooks', { url: URL })))
    t.equal(answers.filter(({ status }) => status === 201).length, 20)
    assertError(t, answers.find(({ status }) => status !== 201)!, 409, 'webhook_limit_reached', '20 webhooks')
    const { body: [first] } = await ada.get('/webhooks')
    await ada.delete(`/webhooks/${first.id}`)
    t.equal((await ada.post('/webhooks', { url: URL })).status, 201)
  })
})
