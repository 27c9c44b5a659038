import t from 'tap'
import { startApp, type Client } from '../support/app.ts'
import { assertResponse, linkOf } from '../support/checks.ts'
import { count, newCategory, newOrder, newPet, newWebhook, setStatus, stocked } from '../support/fixtures.ts'
import { ifNoneMatch } from './fields.ts'

const STRONG = /^"[\x21\x23-\x7e]+"$/

/** Creates one record of each kind. @returns their paths */
const RECORDS: Record<string, (client: Client) => Promise<string>> = {
  account: async () => '/account',
  category: async (ada) => `/categories/${await newCategory(ada)}`,
  pet: async (ada) => `/pets/${await newPet(ada)}`,
  'pet in a list of one': async (ada) => `/pets?id=${await newPet(ada)}`,
  'inventory entry': async (ada) => `/inventory/${await stocked(ada, 3)}`,
  order: async (ada) => `/store/orders/${await newOrder(ada, await stocked(ada, 3))}`,
  message: async (ada) => `/messages/${(await ada.post('/messages', { message: 'Hello' })).body.id}`,
  webhook: async (ada) => `/webhooks/${await newWebhook(ada)}`
}

/** The lists, each with the request that adds a record. */
const LISTS: Record<string, (client: Client) => Promise<unknown>> = {
  '/account/keys': async (ada) => await ada.post('/account/keys', {}),
  '/categories': async (ada) => await newCategory(ada),
  '/pets': async (ada) => await newPet(ada),
  '/inventory': async (ada) => await stocked(ada, 3),
  '/store/orders': async (ada) => await newOrder(ada, await stocked(ada, 3)),
  '/messages': async (ada) => await ada.post('/messages', { message: 'Hello' }),
  '/webhooks': async (ada) => await newWebhook(ada)
}

t.test('conditional requests', async (t) => {
  const { openAccount, withKey } = await startApp(t)

  for (const [name, prepare] of Object.entries(RECORDS)) {
    await t.test(`a client with the current ${name} gets 304, and otherwise the record`, async (t) => {
      const ada = await openAccount()
      const path = await prepare(ada)
      const read = await ada.get(path)
      const tag = read.headers.etag!
      t.match(tag, STRONG)
      for (const known of [tag, `W/${tag}`, '*', `"other", ${tag}`, `"a","b",W/${tag} , "c"`]) {
        for (const method of ['GET', 'HEAD']) {
          const answer = await ada.request(method, path, { headers: ifNoneMatch(known) })
          assertResponse(t, answer, 304, undefined, `${method} ${known}`)
          t.same([answer.text, answer.headers.etag, answer.headers.link], ['', tag, read.headers.link])
          t.equal(answer.headers['cache-control'], 'private, no-cache')
        }
      }
      for (const unknown of ['"other"', 'W/"other"', '"*"', '']) {
        const answer = await ada.get(path, ifNoneMatch(unknown))
        assertResponse(t, answer, 200, read.body, unknown)
        t.equal(answer.headers.etag, tag)
      }
      const other = withKey((await ada.post('/account/keys', { readOnly: true })).body.apiKey)
      t.equal((await other.get(path)).headers.etag, tag, 'the tag is the same for every key')
    })
  }

  for (const [path, add] of Object.entries(LISTS)) {
    await t.test(`a client with the current page of ${path} gets 304 with its links`, async (t) => {
      const ada = await openAccount()
      await add(ada)
      await add(ada)
      for (const query of ['', '?limit=1', '?limit=1&cursor=1']) {
        const page = await ada.get(path + query)
        t.match(page.headers.etag, /^"[\w-]{20,}"$/, 'called strong, so no short hash')
        for (const method of ['GET', 'HEAD']) {
          const known = await ada.request(method, path + query, { headers: ifNoneMatch(page.headers.etag) })
          assertResponse(t, known, 304, undefined, `${method} ${query}`)
          t.same([known.text, known.headers.etag, known.headers.link], ['', page.headers.etag, page.headers.link])
        }
      }
      const whole = await ada.get(path)
      t.equal((await ada.get(path)).headers.etag, whole.headers.etag, 'nothing happened')
      await add(ada)
      const more = await ada.get(path, ifNoneMatch(whole.headers.etag))
      t.equal(more.status, 200)
      t.not(more.headers.etag, whole.headers.etag)
    })
  }

  await t.test('a creation and a read with the same tag have the same text, but for a secret', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 3)
    const { categoryId } = (await ada.get(`/pets/${petId}`)).body
    const time = '2096-12-24T18:00:00.000Z'
    for (const [path, body] of [
      ['/accounts', { email: 'ada@example.com', name: 'Ada' }],
      ['/account/keys', { expiresAt: time, readOnly: true, label: 'Scanner' }],
      ['/categories', { description: 'Loyal', name: 'Dogs' }],
      ['/pets', { status: 'pending', categoryId, name: 'Rex' }],
      ['/store/orders', { complete: true, shipDate: time, quantity: 2, petId }],
      ['/messages', { message: 'Hello' }],
      ['/webhooks', { enabled: false, events: ['pet.created'], url: 'https://example.com/' }]
    ] as const) {
      const created = await ada.post(path, body)
      t.equal(created.status, 201, path)
      const reader = path === '/accounts' ? withKey(created.body.apiKey) : ada
      const read = await reader.get(created.headers.location!)
      t.equal(read.text, created.text.replace(/,"(apiKey|secret)":"[^"]*"/, ''), path)
      t.equal(read.headers.etag, created.headers.etag)
    }
  })

  await t.test('a page with the same records but other links has another tag', async (t) => {
    const ada = await openAccount()
    await newCategory(ada)
    const last = await ada.get('/categories?limit=1')
    await newCategory(ada)
    const page = await ada.get('/categories?limit=1', ifNoneMatch(last.headers.etag))
    assertResponse(t, page, 200, last.body)
    t.not(page.headers.etag, last.headers.etag)
    t.ok(linkOf(page, 'next'))
  })

  await t.test(
    'the tags of a pet and its inventory item both change with their common status, and separately otherwise',
    async (t) => {
      const ada = await openAccount()
      const petId = await stocked(ada, 3)
      const tags = async (): Promise<Array<string | undefined>> => [
        (await ada.get(`/pets?id=${petId}`)).headers.etag,
        (await ada.get(`/inventory/${petId}`)).headers.etag
      ]
      let known = await tags()
      const moves = async (what: string, pet: boolean, entry: boolean): Promise<void> => {
        const now = await tags()
        t.same([now[0] !== known[0], now[1] !== known[1]], [pet, entry], what)
        known = now
      }
      await count(ada, petId, 3)
      await moves('the same count', false, false)
      await count(ada, petId, 4)
      await moves('another count', false, true)
      await newOrder(ada, petId, 1, true)
      await moves('an order that leaves units', false, true)
      await ada.patch(`/pets/${petId}`, { name: 'Waldi' })
      await moves('a new name', true, false)
      await setStatus(ada, petId, 'pending')
      await moves('a status set by hand', true, true)
      await count(ada, petId, 3)
      await moves('the same count, which ends the hold', true, true)
      const orderId = await newOrder(ada, petId, 3)
      await moves('an order of the last units', true, true)
      await ada.patch(`/store/orders/${orderId}`, { shipDate: '2026-12-24T18:00:00Z' })
      await moves('a ship date', false, false)
      await ada.patch(`/store/orders/${orderId}`, { complete: true })
      await moves('the last open order complete, none in stock', true, true)
    }
  )
})
