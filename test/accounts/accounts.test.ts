import t from 'tap'
import { startApp } from '../support/app.ts'
import { assertResponse, KEY, assertListed, readerOf, assertError, assertRejectsInput } from '../support/checks.ts'
import { newOrder, stocked } from '../support/fixtures.ts'
import { stockedStore } from '../support/operations.ts'

t.test('accounts', async (t) => {
  const running = await startApp(t)
  const { nobody, openAccount, withKey } = running

  await t.test('a key of another service, however well formed, is refused', async (t) => {
    const stranger = await (await startApp(t)).openAccount()
    assertError(t, await withKey(stranger.key!).get('/account'), 401, 'unauthorized', 'does not exist or was revoked')
  })

  await t.test('the word Bearer is taken in any case', async (t) => {
    const { key } = await openAccount()
    for (const word of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
      t.equal((await nobody.get('/account', { authorization: `${word} ${key}` })).status, 200, word)
    }
  })

  await t.test('bad input is refused with the field and the rule', async (t) => {
    await assertRejectsInput(t, async (body) => await nobody.post('/accounts', body), [
      [{}, 'name is required'],
      [{ name: null }, 'name must be a string'],
      [{ name: '' }, 'name must have at least 1 character'],
      [{ name: 'x'.repeat(256) }, 'name must have at most 255 characters'],
      [{ name: 'a\u0000' }, 'U+0000'],
      [{ name: 'A', email: null }, 'email must be a string'],
      [{ name: 'A', email: '' }, 'email must have at least 1 character'],
      [{ name: 'A', email: 'x'.repeat(256) }, 'email must have at most 255 characters'],
      [{ name: 'A', id: 1 }, '"id" is not allowed'],
      [{ name: 'A', apiKey: 'psk_' }, '"apiKey" is not allowed']
    ])
  })

  await t.test('an account is opened with its first key, shown once', async (t) => {
    const opened = await nobody.post('/accounts', { name: "Ada's Animals", email: 'ada@example.com' })
    const { id, createdAt, apiKey } = opened.body
    assertResponse(t, opened, 201, { id, name: "Ada's Animals", email: 'ada@example.com', createdAt, apiKey })
    t.ok(Number.isSafeInteger(id) && id > 0)
    t.equal(new Date(createdAt).toISOString(), createdAt)
    t.match(apiKey, KEY)
    t.match(opened.headers, { location: '/account', 'cache-control': 'no-store' })

    const ada = withKey(apiKey)
    const read = await ada.get('/account')
    assertResponse(t, read, 200, { id, name: "Ada's Animals", email: 'ada@example.com', createdAt })
    t.equal(read.headers.etag, opened.headers.etag)
    t.match(read.headers.etag, /^"[^"]+"$/)
    assertResponse(t, await ada.get('/account', { 'if-none-match': read.headers.etag! }), 304)
    t.equal((await ada.request('HEAD', '/account')).status, 200)
  })

  await t.test('an email that was not given is absent, and none needs to be unique', async (t) => {
    const [one, two] = [await nobody.post('/accounts', { name: 'A' }), await nobody.post('/accounts', { name: 'A' })]
    for (const { body } of [one, two]) {
      assertResponse(t, await withKey(body.apiKey).get('/account'), 200, {
        id: body.id,
        name: 'A',
        createdAt: body.createdAt
      })
    }
    t.not(one.body.id, two.body.id)
  })

  await t.test('lengths count characters, not bytes', async (t) => {
    const name = '🐶'.repeat(255)
    t.equal((await nobody.post('/accounts', { name })).body.name, name)
  })

  await t.test('deleting an account erases it and ends all of its keys at once', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const reader = await readerOf(ada, withKey)
    await stockedStore(ada)
    const petId = await stocked(ada, 3)
    await newOrder(ada, petId)
    await newOrder(ada, petId, 1, true)
    await ada.post('/messages', { message: 'Hello' }, { 'idempotency-key': 'hello' })
    const kept = await stocked(bob, 3)
    t.equal((await reader.get('/account')).status, 200)

    assertResponse(t, await ada.delete('/account', { 'idempotency-key': 'goodbye' }), 204)
    for (const client of [ada, reader]) {
      for (const path of ['/account', '/pets', '/messages']) {
        assertError(t, await client.get(path), 401, 'unauthorized', /revoked|deleted/)
      }
      assertError(t, await client.delete('/account'), 401, 'unauthorized')
    }
    assertListed(t, await bob.get('/inventory'), [kept], 'others keep what is theirs')
    t.ok((await openAccount()).account! > bob.account!, 'ids are not used again')
  })
})

t.test('a service that is closed to new accounts', async (t) => {
  const { nobody } = await startApp(t, { SIGNUP: 'closed' })
  assertError(t, await nobody.post('/accounts', { name: 'A' }), 403, 'signup_closed', 'does not open accounts')
  assertError(t, await nobody.get('/account'), 401, 'unauthorized')
  assertError(t, await nobody.get('/accounts'), 405, 'method_not_allowed')
})

t.test('addresses in answers hold the base path and the public address', async (t) => {
  const cases = [
    [{ BASE_PATH: '/v1' }, '/v1', '/v1'],
    [{ PUBLIC_URL: 'https://pets.example' }, '', 'https://pets.example'],
    [{ BASE_PATH: '/api/v1', PUBLIC_URL: 'https://pets.example' }, '/api/v1', 'https://pets.example/api/v1']
  ] as const
  for (const [settings, base, shown] of cases) {
    const { nobody, withKey } = await startApp(t, settings)
    const opened = await nobody.post(`${base}/accounts`, { name: 'A' })
    t.equal(opened.headers.location, `${shown}/account`)
    const ada = withKey(opened.body.apiKey)

    const category = await ada.post(`${base}/categories`, { name: 'Dogs' })
    t.equal(category.headers.location, `${shown}/categories/${category.body.id}`)
    const pet = await ada.post(`${base}/pets`, { name: 'Rex', categoryId: category.body.id })
    t.equal(pet.headers.location, `${shown}/pets/${pet.body.id}`)
    const successor = await ada.get(`${base}/pets/${pet.body.id}`)
    t.equal(successor.headers.link, `<${shown}/pets?id=${pet.body.id}>; rel="successor-version"`)
    await ada.patch(`${base}/inventory/${pet.body.id}`, { quantity: 5 })
    const order = await ada.post(`${base}/store/orders`, { petId: pet.body.id })
    t.equal(order.headers.location, `${shown}/store/orders/${order.body.id}`)
    const message = await ada.post(`${base}/messages`, { message: 'Hello' })
    t.equal(message.headers.location, `${shown}/messages/${message.body.id}`)

    await ada.post(`${base}/pets`, { name: 'Bella', categoryId: category.body.id })
    const list = await ada.get(`${base}/pets?limit=1`)
    t.match(
      list.headers.link,
      new RegExp(`^<${shown}/pets\\?limit=1&cursor=[0-9a-z]+>; rel="next", <${shown}/pets\\?limit=1>; rel="first"$`)
    )
    if (base !== '') assertError(t, await ada.get('/pets'), 404, 'route_not_found')
    t.equal((await nobody.get('/livez')).status, 200, 'the service routes have no prefix')
  }
})
