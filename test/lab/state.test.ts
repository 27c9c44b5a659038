import t from 'tap'
import type { StoreState } from '../../src/lab/schemas.ts'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { assertError, assertResponse, readerOf } from '../support/checks.ts'
import { count, newCategory, newOrder, newPet } from '../support/fixtures.ts'
import { ifNoneMatch } from '../contract/fields.ts'

async function stateOf (client: Client): Promise<StoreState> {
  const { status, body, text } = await client.get('/lab/state')
  if (status !== 200) throw new Error(text)
  return body
}

/** A store with a record of each type. */
async function fill (client: Client): Promise<{ categoryId: number, petId: number, orderId: number }> {
  const categoryId = await newCategory(client, 'Dogs')
  await client.patch(`/categories/${categoryId}`, { description: 'Ré🐶\n"\\\u0001' })
  const petId = await newPet(client, { categoryId })
  await count(client, petId, 10)
  const orderId = await newOrder(client, petId, 3)
  await client.patch(`/store/orders/${orderId}`, { shipDate: '2026-12-01T10:00:00.123Z' })
  await newOrder(client, petId, 2, true)
  await client.post('/messages', { message: 'Hello\n"world"' })
  return { categoryId, petId, orderId }
}

t.test('the state of a store', async (t) => {
  const { app, openAccount, withKey, nobody } = await startApp(t)

  await t.test('has a hash of all records, which each change moves', async (t) => {
    const ada = await openAccount()
    const empty = await stateOf(ada)
    t.same(empty.counts, { categories: 0, pets: 0, inventory: 0, orders: 0, messages: 0 })
    const { categoryId, petId, orderId } = await fill(ada)
    const answer = await ada.get('/lab/state')
    const { hash, contentHash, counts } = answer.body
    t.same(counts, { categories: 1, pets: 1, inventory: 1, orders: 2, messages: 1 })
    t.equal(answer.headers.etag, `"${hash}"`)
    t.equal((await ada.get('/lab/state', ifNoneMatch(answer.headers.etag))).status, 304)
    t.same(await stateOf(ada), { hash, contentHash, counts }, 'the same while nothing changes')
    const reader = await readerOf(ada, withKey)
    t.same(await stateOf(reader), { hash, contentHash, counts }, 'a read-only key may ask')

    const hashes = new Set([empty.hash, hash])
    const contents = new Set([empty.contentHash, contentHash])
    const changes: Array<() => Promise<Answer>> = [
      async () => await ada.patch(`/categories/${categoryId}`, { name: 'Cats' }),
      async () => await ada.patch(`/categories/${categoryId}`, { description: null }),
      async () => await ada.patch(`/pets/${petId}`, { name: 'Other' }),
      async () => await ada.patch(`/pets/${petId}`, { status: 'pending' }),
      async () => await ada.patch(`/inventory/${petId}`, { quantity: 11 }),
      async () => await ada.patch(`/store/orders/${orderId}`, { shipDate: null }),
      async () => await ada.patch(`/store/orders/${orderId}`, { complete: true }),
      async () => await ada.post('/messages', { message: 'Later' }),
      async () => await ada.post('/categories', { name: 'Cats' })
    ]
    for (const [i, change] of changes.entries()) {
      const { status, text } = await change()
      t.ok(status < 300, text)
      const state = await stateOf(ada)
      t.notOk(hashes.has(state.hash), `change ${i} moves the hash`)
      t.notOk(contents.has(state.contentHash), `change ${i} moves the hash of the content`)
      hashes.add(state.hash)
      contents.add(state.contentHash)
    }
    await ada.patch(`/pets/${petId}`, { name: 'Third' })
    const before = await stateOf(ada)
    await ada.patch(`/pets/${petId}`, { name: 'Fourth' })
    await ada.patch(`/pets/${petId}`, { name: 'Third' })
    const after = await stateOf(ada)
    t.not(after.hash, before.hash, 'a version that moved on is another state')
    t.equal(after.contentHash, before.contentHash, 'with the same content')
  })

  await t.test('has a hash of its content, equal for stores that the same requests have filled', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    await ada.post('/lab/reset', { sample: { pets: 60, seed: 7 } })
    await newCategory(bob)
    await bob.post('/lab/reset', { sample: { pets: 60, seed: 7 } })
    await fill(ada)
    await fill(bob)
    const [hers, his] = [await stateOf(ada), await stateOf(bob)]
    t.equal(hers.contentHash, his.contentHash)
    t.same(hers.counts, his.counts)
    t.not(hers.hash, his.hash, 'ids differ')
    await bob.post('/lab/reset', { sample: { pets: 60, seed: 8 } })
    await fill(bob)
    t.not((await stateOf(bob)).contentHash, hers.contentHash)
    t.same(await stateOf(ada), hers, 'changes of one account do not concern another')
  })

  await t.test('has the same hash of its content on both databases', async (t) => {
    const ada = await openAccount()
    await ada.post('/lab/reset', { sample: { pets: 600, seed: 7 } })
    await fill(ada)
    t.equal((await stateOf(ada)).contentHash, CONTENT_HASH)
  })

  await t.test('is that of one moment, whatever is written meanwhile', async (t) => {
    const ada = await openAccount()
    const first = await newCategory(ada, '0')
    const data = { accountId: ada.account!, name: 'Dogs', description: 'x'.repeat(500) }
    await app.database.prisma.category.createMany({ data: Array<typeof data>(2_000).fill(data) })
    const last = await newCategory(ada, '0')
    const { body: { id } } = await ada.post('/lab/snapshots', {})
    const ending = new AbortController()
    const write = async (): Promise<void> => {
      for (let n = 1; !ending.signal.aborted; n++) {
        for (const id of [first, last]) t.equal((await ada.patch(`/categories/${id}`, { name: String(n) })).status, 200)
      }
    }
    const writing = write()
    for (let i = 0; i < 5; i++) {
      const { body: { changed } } = await ada.get(`/lab/snapshots/${id}/diff`)
      const numberOf = (id: number): number =>
        Number(changed.find(({ after }: any) => after.id === id)?.after.name ?? 0)
      const ahead = numberOf(first) - numberOf(last)
      t.ok(ahead === 0 || ahead === 1, `the first, which is written first, is ahead of the last by ${ahead}`)
    }
    ending.abort()
    await writing
  })

  await t.test('lets others have their turns while a large store is read', async (t) => {
    const ada = await openAccount()
    const data = { accountId: ada.account!, name: 'Dogs', description: 'x'.repeat(2_000) }
    await app.database.prisma.category.createMany({ data: Array<typeof data>(2_000).fill(data) })
    const { body: { id } } = await ada.post('/lab/snapshots', {})
    const { text: file } = await ada.get(`/lab/snapshots/${id}/rows`)
    t.ok(file.length > 4_000_000)
    const reads: Record<string, () => Promise<Answer>> = {
      state: async () => await ada.get('/lab/state'),
      rows: async () => await ada.get(`/lab/snapshots/${id}/rows`),
      diff: async () => await ada.get(`/lab/snapshots/${id}/diff`),
      import: async () => await ada.request('POST', '/lab/snapshots/import', {
        body: file, headers: { 'content-type': 'application/x-ndjson' }
      })
    }
    for (const [name, read] of Object.entries(reads)) {
      const ending = new AbortController()
      const answer = read().finally(() => { ending.abort() })
      let others = 0
      while (!ending.signal.aborted) {
        if ((await nobody.get('/livez')).status === 200) others++
      }
      t.ok((await answer).status < 300, (await answer).text)
      t.ok(others > 20, `${others} others while the service answers ${name}`)
    }
  })

  await t.test('of a store that is too large is refused', async (t) => {
    const ada = await openAccount()
    await app.database.prisma.category.createMany({
      data: Array.from({ length: 10_000 }, () => ({ accountId: ada.account!, name: 'Dogs' }))
    })
    t.equal((await stateOf(ada)).hash.length, 64)
    await newCategory(ada)
    assertError(t, await ada.get('/lab/state'), 409, 'store_too_large', '10000 records')
  })
})

/** Of 600 pets by the seed 7, and what `fill` adds. */
const CONTENT_HASH = 'f73a0b13a8fd3048a87e6732e2065d4cc02d0d95bad631277fe5a5f22be089e0'

t.test('the difference to a snapshot', async (t) => {
  const { openAccount } = await startApp(t)

  await t.test('has each record of each type that was created, changed or deleted', async (t) => {
    const ada = await openAccount()
    const { categoryId, petId, orderId } = await fill(ada)
    const bare = await newPet(ada, { categoryId, name: 'Bare' })
    const gone = await newPet(ada, { categoryId, name: 'Gone' })
    await count(ada, gone, 3)
    const cancelled = await newOrder(ada, petId, 1)
    const empty = await newCategory(ada, 'Empty')
    const { body: { id } } = await ada.post('/lab/snapshots', {})
    const path = `/lab/snapshots/${id}/diff`
    assertResponse(t, await ada.get(path), 200, { created: [], changed: [], deleted: [] })

    await ada.patch(`/categories/${categoryId}`, { name: 'Cats' })
    await ada.delete(`/categories/${empty}`)
    const { body: category } = await ada.post('/categories', { name: 'New' })
    await ada.patch(`/pets/${petId}`, { status: 'pending' })
    await ada.delete(`/pets/${gone}`)
    const { body: pet } = await ada.post('/pets', { name: 'New', categoryId: category.id })
    await count(ada, bare, 5)
    await ada.delete(`/store/orders/${cancelled}`)
    await ada.patch(`/store/orders/${orderId}`, { complete: true })
    const { body: order } = await ada.post('/store/orders', { petId: bare, quantity: 2 })
    const { body: message } = await ada.post('/messages', { message: 'Later' })
    // Changed, and changed back.
    await ada.patch(`/pets/${bare}`, { name: 'Other' })
    await ada.patch(`/pets/${bare}`, { name: 'Bare' })

    const description = 'Ré🐶\n"\\\u0001'
    const shipDate = '2026-12-01T10:00:00.123Z'
    const answer = await ada.get(path)
    assertResponse(t, answer, 200, {
      created: [
        { type: 'category', ...category },
        { type: 'pet', ...pet },
        { type: 'inventory', petId: bare, quantity: 3, status: 'available' },
        { type: 'order', ...order },
        { type: 'message', ...message }
      ],
      changed: [
        {
          before: { type: 'category', id: categoryId, name: 'Dogs', description },
          after: { type: 'category', id: categoryId, name: 'Cats', description }
        },
        {
          before: { type: 'pet', id: petId, name: 'Rex', categoryId, status: 'available' },
          after: { type: 'pet', id: petId, name: 'Rex', categoryId, status: 'pending' }
        },
        {
          before: { type: 'inventory', petId, quantity: 4, status: 'available' },
          after: { type: 'inventory', petId, quantity: 5, status: 'pending' }
        },
        {
          before: { type: 'order', id: orderId, petId, quantity: 3, shipDate, complete: false },
          after: { type: 'order', id: orderId, petId, quantity: 3, shipDate, complete: true }
        }
      ],
      deleted: [
        { type: 'category', id: empty, name: 'Empty' },
        { type: 'pet', id: gone, name: 'Gone', categoryId, status: 'available' },
        { type: 'inventory', petId: gone, quantity: 3, status: 'available' },
        { type: 'order', id: cancelled, petId, quantity: 1, complete: false }
      ]
    })
    t.equal((await ada.get(path, ifNoneMatch(answer.headers.etag))).status, 304)
    await ada.post(`/lab/snapshots/${id}/restore`, undefined)
    assertResponse(t, await ada.get(path), 200, { created: [], changed: [], deleted: [] }, 'none after a restore')
  })

  await t.test('has a message that was deleted with the store', async (t) => {
    const ada = await openAccount()
    const { body: message } = await ada.post('/messages', { message: 'Hello' })
    const { body: { id } } = await ada.post('/lab/snapshots', {})
    await ada.post('/lab/reset', {})
    const deleted = [{ type: 'message', ...message }]
    assertResponse(t, await ada.get(`/lab/snapshots/${id}/diff`), 200, { created: [], changed: [], deleted })
  })

  await t.test('of another account cannot be seen', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    await fill(ada)
    const { body: { id } } = await ada.post('/lab/snapshots', {})
    for (const part of ['diff', 'rows']) {
      assertError(t, await bob.get(`/lab/snapshots/${id}/${part}`), 404, 'snapshot_not_found')
    }
    const { body: { id: his } } = await bob.post('/lab/snapshots', {})
    assertResponse(t, await bob.get(`/lab/snapshots/${his}/diff`), 200, { created: [], changed: [], deleted: [] })
    assertResponse(t, await bob.get(`/lab/snapshots/${his}/rows`), 200, undefined)
  })
})
