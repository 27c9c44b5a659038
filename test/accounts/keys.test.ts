import t from 'tap'
import { startApp, type Answer, type Client } from '../support/app.ts'
import {
  assertResponse, KEY, assertListed, readerOf, assertError, assertRejectsInput, walk
} from '../support/checks.ts'
import { newOrder, stocked } from '../support/fixtures.ts'
import { eventually } from '../support/receiver.ts'
import { rejectedWithin } from '../support/revocation.ts'

const PAST = '2020-01-01T00:00:00.000Z'

t.test('API keys', async (t) => {
  const running = await startApp(t)
  const { nobody, openAccount, withKey } = running

  /** A new key; the client of the key and its id. */
  async function newKey (ada: Client, fields: object = {}): Promise<Client & { id: number }> {
    const { body } = await ada.post('/account/keys', fields)
    return { ...withKey(body.apiKey, ada.account), id: body.id }
  }

  async function firstKey (ada: Client): Promise<number> {
    return (await ada.get('/account/keys?limit=1')).body[0].id
  }

  await t.test('bad input is refused with the field and the rule', async (t) => {
    const ada = await openAccount()
    await assertRejectsInput(t, async (body) => await ada.post('/account/keys', body), [
      [{ label: null }, 'label must be a string'],
      [{ label: '' }, 'label must have at least 1 character'],
      [{ label: 'x'.repeat(256) }, 'label must have at most 255 characters'],
      [{ readOnly: 'true' }, 'readOnly must be a boolean'],
      [{ readOnly: null }, 'readOnly must be a boolean'],
      [{ expiresAt: 'tomorrow' }, 'expiresAt must be an RFC 3339 date'],
      [{ expiresAt: '2030-01-01' }, 'expiresAt must be an RFC 3339 date'],
      [{ expiresAt: null }, 'expiresAt must be a string'],
      [{ prefix: 'abcdefgh' }, '"prefix" is not allowed']
    ])
    await assertRejectsInput(t, async (query) => await ada.get(`/account/keys?${query}`), [
      ['sort=label', 'sort'],
      ['readOnly=true', '"readOnly" is not allowed']
    ])
    assertListed(t, await ada.get('/account/keys'), [await firstKey(ada)], 'no key was made')
  })

  await t.test('a key is made, and its secret shown this once', async (t) => {
    const ada = await openAccount()
    const plain = await ada.post('/account/keys', {})
    assertResponse(t, plain, 201, {
      id: plain.body.id,
      prefix: plain.body.prefix,
      readOnly: false,
      createdAt: plain.body.createdAt,
      apiKey: plain.body.apiKey
    })
    t.equal(plain.headers['cache-control'], 'no-store')
    t.equal(plain.headers.location, `/account/keys/${plain.body.id}`)
    const { apiKey: secret, ...shown } = plain.body
    const read = await ada.get(plain.headers.location!)
    assertResponse(t, read, 200, shown)
    t.equal(read.headers.etag, plain.headers.etag)
    t.notOk(read.text.includes(secret.slice(13)))
    t.match(plain.body.apiKey, KEY)
    t.ok(plain.body.apiKey.startsWith(`psk_${plain.body.prefix}_`))

    const full = await ada.post('/account/keys', {
      label: 'Scanner',
      readOnly: true,
      expiresAt: '2099-06-01T12:00:00.123456+02:00'
    })
    const { id, prefix, createdAt, apiKey } = full.body
    assertResponse(t, full, 201, {
      id,
      label: 'Scanner',
      prefix,
      readOnly: true,
      createdAt,
      expiresAt: '2099-06-01T10:00:00.123Z',
      apiKey
    })
    t.equal((await withKey(apiKey).get('/account')).body.id, ada.account)
  })

  await t.test('an account has at most 100 keys, also when they are created at the same time', async (t) => {
    const ada = await openAccount()
    const answers = await Promise.all(Array.from({ length: 102 }, async (_, i) =>
      await ada.post('/account/keys', i % 2 === 0 ? { expiresAt: PAST } : {})))
    t.equal(answers.filter(({ status }) => status === 201).length, 99, 'with the first key and expired ones')
    assertError(t, answers.find(({ status }) => status !== 201)!, 409, 'api_key_limit_reached', '100 API keys')
    t.equal((await walk(ada, '/account/keys?limit=100')).length, 100)

    const { body: { id } } = answers.find(({ status }) => status === 201)!
    t.equal((await ada.delete(`/account/keys/${id}`)).status, 204)
    t.equal((await ada.post('/account/keys', {})).status, 201, 'a revoked key makes room')
    t.equal((await (await openAccount()).post('/account/keys', {})).status, 201, 'other accounts are not affected')
  })

  await t.test('the list shows every key and no secret', async (t) => {
    const ada = await openAccount()
    const keys = [await newKey(ada), await newKey(ada, { label: 'Old', expiresAt: PAST })]
    const list = await ada.get('/account/keys')
    assertListed(t, list, [await firstKey(ada), ...keys.map(({ id }) => id)])
    for (const { key } of [ada, ...keys]) t.notOk(list.text.includes(key!.slice(13)), 'the secret part is nowhere')
    const { createdAt, prefix } = list.body[2]
    t.same(list.body[2], { id: keys[1]!.id, label: 'Old', prefix, readOnly: false, createdAt, expiresAt: PAST })
    t.same(await walk(ada, '/account/keys?limit=1&sort=-id'), (await ada.get('/account/keys?sort=-id')).body)
  })

  await t.test('the list says when a key was last used, to the hour', async (t) => {
    const ada = await openAccount()
    const unused = await newKey(ada)
    const used = await newKey(ada)
    const hour = (time: number): string => new Date(Math.floor(time / 3_600_000) * 3_600_000).toISOString()
    await used.get('/account')
    // Nobody waits for the note of it, so it may come a moment later.
    let shown: any
    await eventually(async () => {
      [shown] = (await ada.get('/account/keys?sort=-id&limit=1')).body
      return shown.lastUsedAt !== undefined
    })
    const { createdAt, prefix } = shown
    // The hour of the use may begin before the creation.
    t.ok([createdAt, hour(Date.now())].includes(shown.lastUsedAt), String(shown.lastUsedAt))
    t.ok(shown.lastUsedAt >= createdAt, `${shown.lastUsedAt} is not before ${createdAt}`)
    t.same(shown, { id: used.id, prefix, readOnly: false, createdAt, lastUsedAt: shown.lastUsedAt })
    t.equal((await ada.get('/account/keys')).body[1].lastUsedAt, undefined, `key ${unused.id} was never used`)
    const [never, once] = [await ada.get(`/account/keys/${unused.id}`), await ada.get(`/account/keys/${used.id}`)]
    t.same(once.body, shown)
    t.not(once.headers.etag, never.headers.etag, 'a use changes the entity tag, as it changes the record')
    const stale = await ada.request('DELETE', `/account/keys/${used.id}`, { headers: { 'if-match': '"1"' } })
    assertError(t, stale, 412, 'precondition_failed')
  })

  await t.test('a key stops at the moment it expires', async (t) => {
    const ada = await openAccount()
    const expired = await newKey(ada, { expiresAt: PAST })
    assertError(t, await expired.get('/account'), 401, 'unauthorized', 'expired')
    const end = Date.now() + 1_500
    const passing = await newKey(ada, { expiresAt: new Date(end).toISOString() })
    let late: Answer
    do {
      await new Promise((resolve) => { setTimeout(resolve, 50) })
      const sentAt = Date.now()
      late = await passing.get('/account')
      if (sentAt >= end) t.equal(late.status, 401, 'afterwards')
      if (Date.now() < end) t.equal(late.status, 200, 'before')
    } while (late.status === 200)
    assertError(t, late, 401, 'unauthorized', 'expired')
    t.equal(late.headers['www-authenticate'], 'Bearer realm="petstore", error="invalid_token"')
  })

  await t.test('a read-only key reads everything', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 2)
    const orderId = await newOrder(ada, petId)
    const reader = await readerOf(ada, withKey)
    for (const path of [
      '/account',
      '/account/keys',
      '/pets',
      `/pets/${petId}`,
      '/categories',
      '/store/orders',
      `/store/orders/${orderId}`,
      '/inventory',
      `/inventory/${petId}`,
      '/messages'
    ]) {
      t.equal((await reader.get(path)).status, 200, path)
      t.equal((await reader.request('HEAD', path)).status, 200, path)
    }
    t.equal((await reader.request('OPTIONS', '/pets')).status, 204)
  })

  await t.test('a revoked key stops working at once, and the others do not', async (t) => {
    const ada = await openAccount()
    const other = await newKey(ada)
    t.equal((await other.get('/account')).status, 200)
    assertResponse(t, await ada.delete(`/account/keys/${other.id}`), 204)
    assertError(t, await other.get('/account'), 401, 'unauthorized', 'revoked')
    assertError(t, await other.delete(`/account/keys/${other.id}`), 401, 'unauthorized')
    t.equal((await ada.get('/account')).status, 200)
    assertError(t, await ada.delete(`/account/keys/${other.id}`), 404, 'api_key_not_found')
    assertListed(t, await ada.get('/account/keys'), [await firstKey(ada)])
  })

  await t.test('a misspelt key is recognised by its checksum, without a query', async (t) => {
    const ada = await openAccount()
    const key = ada.key!
    for (const at of [4, 8, 13, 20, 44, key.length - 6, key.length - 1]) {
      const misspelt = `${key.slice(0, at)}${key[at] === 'a' ? 'b' : 'a'}${key.slice(at + 1)}`
      assertError(t, await withKey(misspelt).get('/account'), 401, 'unauthorized', 'This is not an API key', misspelt)
    }
    t.equal((await ada.get('/account')).status, 200)
  })

  await t.test('a revoked key stops working in another process within 5 seconds', async (t) => {
    const ada = await openAccount()
    const other = await newKey(ada)
    const there = (await startApp(t, { DATABASE_URL: running.config.DATABASE_URL })).withKey(other.key!)
    t.equal((await there.get('/account')).status, 200)
    await ada.delete(`/account/keys/${other.id}`)
    await rejectedWithin(t, 5_000, async () => (await there.get('/account')).status)
    assertError(t, await there.get('/account'), 401, 'unauthorized', 'revoked')
  })

  await t.test('a key may revoke itself while another may write', async (t) => {
    const ada = await openAccount()
    const other = await newKey(ada)
    assertResponse(t, await ada.delete(`/account/keys/${await firstKey(ada)}`), 204)
    assertError(t, await ada.get('/account'), 401, 'unauthorized')
    assertListed(t, await other.get('/account/keys'), [other.id])
  })

  await t.test('the last unexpired key that may write stays', async (t) => {
    const ada = await openAccount()
    const first = await firstKey(ada)
    assertError(t, await ada.delete(`/account/keys/${first}`), 409, 'last_api_key')
    const reader = await newKey(ada, { readOnly: true })
    const expired = await newKey(ada, { expiresAt: PAST })
    assertError(t, await ada.delete(`/account/keys/${first}`), 409, 'last_api_key')
    assertResponse(t, await ada.delete(`/account/keys/${reader.id}`), 204)
    assertResponse(t, await ada.delete(`/account/keys/${expired.id}`), 204)
    t.equal((await ada.get('/account')).status, 200)
  })

  await t.test('of two keys that revoke each other at once, one stays', async (t) => {
    for (let round = 0; round < 5; round++) {
      const ada = await openAccount()
      const [first, other] = [await firstKey(ada), await newKey(ada)]
      const answers = await Promise.all([
        ada.delete(`/account/keys/${other.id}`),
        other.delete(`/account/keys/${first}`)
      ])
      // Whoever comes second finds either its own key revoked, or the last one.
      t.equal(answers.filter(({ status }) => status === 204).length, 1, String(answers.map(({ status }) => status)))
      const left = await Promise.all([ada.get('/account'), other.get('/account')])
      t.same(left.map(({ status }) => status).sort(), [200, 401])
    }
  })

  await t.test('a key that is not there, or another account\'s, is not found', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    assertError(t, await ada.delete('/account/keys/9223372036854775807'), 404, 'api_key_not_found')
    assertError(t, await ada.delete(`/account/keys/${await firstKey(bob)}`), 404, 'api_key_not_found')
    t.equal((await bob.get('/account')).status, 200)
    t.equal((await nobody.get('/account')).status, 401)
  })
})
