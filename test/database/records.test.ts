import t from 'tap'
import { startApp } from '../support/app.ts'

// The database builds the JSON of a read, the service that of a write. Both must be the same text: the same fields, in
// the same order, escaped alike.
// eslint-disable-next-line no-template-curly-in-string
const NASTY = 'q" b\\ s/ \b\f\n\r\t \u0001\u001f\u007f é ü 漢 😀 \u2028\u2029 \'; DROP TABLE pets; -- ${x} %s null'

t.test('a read returns exactly the text that the write returned', async (t) => {
  const { openAccount } = await startApp(t)
  const store = await openAccount(NASTY)

  async function same (
    name: string,
    written: { text: string, status: number },
    path: string,
    list: string
  ): Promise<void> {
    t.ok([200, 201].includes(written.status), `${name} was written`)
    t.equal((await store.get(path)).text, written.text, `${name} by its id`)
    const records = (await store.get(list)).text
    t.equal(records.slice(1, -1), written.text, `${name} in its list`)
  }

  const category = await store.post('/categories', { name: NASTY, description: NASTY })
  await same('a category', category, `/categories/${category.body.id}`, '/categories')
  await same(
    'a category without a description',
    await store.patch(`/categories/${category.body.id}`, { description: null }),
    `/categories/${category.body.id}`,
    '/categories'
  )
  await same(
    'a category with an empty description',
    await store.patch(`/categories/${category.body.id}`, { description: '' }),
    `/categories/${category.body.id}`,
    '/categories'
  )

  const pet = await store.post('/pets', { status: 'pending', categoryId: category.body.id, name: NASTY })
  await same('a pet', pet, `/pets/${pet.body.id}`, '/pets')
  await same(
    'an inventory entry',
    await store.patch(`/inventory/${pet.body.id}`, { quantity: 2147483647 }),
    `/inventory/${pet.body.id}`,
    '/inventory'
  )

  const order = await store.post('/store/orders', { petId: pet.body.id, quantity: 3, shipDate: '0001-01-01T00:00:00Z' })
  await same('an order with a date', order, `/store/orders/${order.body.id}`, '/store/orders')
  await same(
    'an order of the last day',
    await store.patch(`/store/orders/${order.body.id}`, { shipDate: '9999-12-31T23:59:59.9999Z' }),
    `/store/orders/${order.body.id}`,
    '/store/orders'
  )
  await same(
    'a complete order without a date',
    await store.patch(`/store/orders/${order.body.id}`, { shipDate: null, complete: true }),
    `/store/orders/${order.body.id}`,
    '/store/orders'
  )

  const message = await store.post('/messages', { message: NASTY })
  await same('a message', message, `/messages/${message.body.id}`, '/messages')

  const fault = await store.post('/lab/faults', { operation: 'listPets', effect: { type: 'delay', ms: 1 }, keyId: 1 })
  await same('a fault', fault, `/lab/faults/${fault.body.id}`, '/lab/faults')
  const snapshot = await store.post('/lab/snapshots', { label: NASTY })
  await same('a snapshot', snapshot, `/lab/snapshots/${snapshot.body.id}`, '/lab/snapshots')

  t.equal((await store.get('/account')).body.name, NASTY)
})

t.test('a read has the members of a write with a secret, in the same order', async (t) => {
  const { nobody, withKey } = await startApp(t)
  const account = await nobody.post('/accounts', { name: NASTY, email: NASTY })
  const store = withKey(account.body.apiKey, account.body.id)
  const key = await store.post('/account/keys', { label: NASTY, readOnly: true, expiresAt: '2100-01-01T00:00:00Z' })
  const webhook = await store.post('/webhooks', { url: 'https://example.com/hooks', events: ['pet.created'] })
  const disabled = await store.patch(`/webhooks/${webhook.body.id}`, { enabled: false })
  t.equal((await store.get(`/webhooks/${webhook.body.id}`)).text, disabled.text)
  const [, keyInList] = (await store.get('/account/keys')).body
  for (const [{ body: { apiKey, secret, ...written } }, read] of [
    [account, (await store.get('/account')).body],
    [key, (await store.get(`/account/keys/${key.body.id}`)).body],
    [key, keyInList],
    [webhook, { ...(await store.get(`/webhooks/${webhook.body.id}`)).body, enabled: true }]
  ]) {
    t.ok(apiKey ?? secret)
    t.equal(JSON.stringify(read), JSON.stringify(written))
  }
})

t.test('an account and a key without optional values have no such fields', async (t) => {
  const { openAccount } = await startApp(t)
  const store = await openAccount()
  t.same(Object.keys((await store.get('/account')).body), ['id', 'name', 'createdAt'])
  // The service writes `lastUsedAt` after its answer, so that it can be missing.
  t.same(
    Object.keys((await store.get('/account/keys')).body[0]).filter((name) => name !== 'lastUsedAt'),
    ['id', 'prefix', 'readOnly', 'createdAt']
  )
})
