import t from 'tap'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { assertError, assertRejectsInput, assertResponse } from '../support/checks.ts'
import { count, newCategory, newOrder, newPet, stocked } from '../support/fixtures.ts'

/** The fixed list of requests whose answers are equal before and after. */
const LISTS = ['/categories', '/pets', '/inventory', '/store/orders', '/messages']

interface Reading { path: string, text: string, etag: string | undefined }

/** Reads a store: its lists, and each of its records. */
async function everythingOf (client: Client): Promise<Reading[]> {
  const readings: Reading[] = []
  const read = async (path: string): Promise<Answer> => {
    const answer = await client.get(path)
    readings.push({ path, text: answer.text, etag: answer.headers.etag })
    return answer
  }
  for (const path of LISTS) {
    const { body } = await read(`${path}?limit=100`)
    for (const { id, petId } of body) await read(`${path}/${path === '/inventory' ? petId : id}`)
  }
  return readings
}

/** A store with records in every state. */
async function fill (client: Client): Promise<{ categoryId: number, pets: number[], orders: number[] }> {
  const categoryId = await newCategory(client, 'Dogs')
  await client.patch(`/categories/${categoryId}`, { description: 'Ré🐶\n"\\' })
  const bare = await newPet(client, { categoryId })
  const many = await stocked(client, 10)
  const soldOut = await stocked(client, 0)
  const open = await newOrder(client, many, 3)
  await client.patch(`/store/orders/${open}`, { shipDate: '2026-12-01T10:00:00.123Z' })
  const complete = await newOrder(client, many, 2, true)
  await client.post('/messages', { message: 'Hello\n"world"' })
  return { categoryId, pets: [bare, many, soldOut], orders: [open, complete] }
}

t.test('snapshots', async (t) => {
  const running = await startApp(t)
  const { openAccount } = running

  await t.test('bad input is refused with the field and the rule', async (t) => {
    const ada = await openAccount()
    await assertRejectsInput(t, async (body) => await ada.post('/lab/snapshots', body), [
      [{ label: '' }, 'label must have at least 1 character'], [{ name: 'x' }, '"name" is not allowed']
    ])
    await assertRejectsInput(t, async (body) => await ada.post('/lab/reset', body), [
      [{ sample: {} }, 'sample.pets is required'], [{ sample: { pets: 2001 } }, 'sample.pets must be 2000 or less'],
      [{ sample: { pets: 1, seed: -1 } }, 'sample.seed must be 0 or more'], [{ sample: null }, 'sample must be']
    ])
  })

  await t.test('a snapshot is taken, read, listed and deleted', async (t) => {
    const ada = await openAccount()
    await fill(ada)
    const taken = await ada.post('/lab/snapshots', { label: 'Before' })
    const { id, createdAt } = taken.body
    const counts = { categories: 3, pets: 3, inventory: 2, orders: 2, messages: 1 }
    assertResponse(t, taken, 201, { id, label: 'Before', createdAt, counts })
    t.equal(taken.headers.location, `/lab/snapshots/${id}`)
    const read = await ada.get(`/lab/snapshots/${id}`)
    assertResponse(t, read, 200, taken.body)
    t.equal(read.headers.etag, taken.headers.etag)
    assertResponse(t, await ada.get('/lab/snapshots'), 200, [taken.body])
    const before = await everythingOf(ada)
    assertResponse(t, await ada.delete(`/lab/snapshots/${id}`), 204)
    assertError(t, await ada.get(`/lab/snapshots/${id}`), 404, 'snapshot_not_found')
    assertError(t, await ada.post(`/lab/snapshots/${id}/restore`, undefined), 404, 'snapshot_not_found')
    t.same(await everythingOf(ada), before, 'the store does not change')
  })

  await t.test('a restore brings back the same bytes and entity tags', async (t) => {
    const ada = await openAccount()
    const { categoryId, pets: [bare, many, soldOut], orders: [open, complete] } = await fill(ada)
    const bob = await openAccount()
    await fill(bob)
    const his = await everythingOf(bob)
    const before = await everythingOf(ada)
    const { body: snapshot } = await ada.post('/lab/snapshots', {})

    await ada.patch(`/categories/${categoryId}`, { name: 'Cats', description: null })
    await ada.patch(`/pets/${bare}`, { name: 'Other', status: 'pending' })
    await count(ada, bare!, 7)
    await count(ada, soldOut!, 4)
    await ada.patch(`/store/orders/${open}`, { complete: true })
    const extra = await newPet(ada, { categoryId })
    await newOrder(ada, many!, 1)
    await ada.post('/messages', { message: 'Later' })
    await newCategory(ada)
    t.notSame(await everythingOf(ada), before)

    const restored = await ada.post(`/lab/snapshots/${snapshot.id}/restore`, undefined)
    assertResponse(t, restored, 200, snapshot)
    t.same(await everythingOf(ada), before)
    assertError(t, await ada.get(`/pets/${extra}`), 404, 'pet_not_found', undefined, 'what was made since is gone')
    t.same(await everythingOf(bob), his, 'the other store is unchanged')

    for (const { body: { id } } of [await ada.post('/pets', { name: 'New', categoryId })]) {
      t.ok(id > extra, 'ids are not used again')
    }
    const { body: events } = await ada.get('/events?limit=100')
    const replaced = events.find(({ type }: { type: string }) => type === 'store.replaced')
    t.same(replaced.data, { reason: 'restored', snapshot })
    t.same(events.map(({ id }: { id: number }) => id), events.map((_: unknown, i: number) => i + 1), 'without gaps')
    t.ok((await ada.get(`/store/orders/${complete}`)).body.complete)
  })

  await t.test('rows that were deleted come back, also in an empty store', async (t) => {
    const ada = await openAccount()
    await fill(ada)
    const before = await everythingOf(ada)
    const { body: { id } } = await ada.post('/lab/snapshots', {})
    assertResponse(t, await ada.post('/lab/reset', {}), 200, {
      counts: { categories: 0, pets: 0, inventory: 0, orders: 0, messages: 0 }
    })
    for (const path of LISTS) assertResponse(t, await ada.get(path), 200, [])
    t.equal((await ada.post(`/lab/snapshots/${id}/restore`, undefined)).status, 200)
    t.same(await everythingOf(ada), before)
  })

  await t.test('no entity tag names two states', async (t) => {
    const ada = await openAccount()
    const { categoryId, pets: [bare, many], orders: [open] } = await fill(ada)
    const { body: { id } } = await ada.post('/lab/snapshots', {})
    const restore = async (): Promise<void> => {
      t.equal((await ada.post(`/lab/snapshots/${id}/restore`, undefined)).status, 200)
    }
    const changes: Array<[path: string, first: object, second: object]> = [
      [`/categories/${categoryId}`, { name: 'A' }, { name: 'B' }],
      [`/pets/${bare}`, { name: 'A' }, { name: 'B' }],
      [`/inventory/${many}`, { quantity: 50 }, { quantity: 60 }],
      // The first count of a pet, twice.
      [`/inventory/${bare}`, { quantity: 50 }, { quantity: 60 }],
      [`/store/orders/${open}`, { shipDate: '2027-01-01T00:00:00.000Z' }, { shipDate: '2028-01-01T00:00:00.000Z' }]
    ]
    for (const [path, first, second] of changes) {
      const seen = new Set<string>()
      for (let round = 0; round < 3; round++) {
        const stale = await ada.patch(path, first)
        t.equal(stale.status, 200, path)
        await restore()
        const next = await ada.patch(path, second)
        t.notOk(seen.has(next.headers.etag!), `${path}: ${next.headers.etag} is new`)
        assertError(t, await ada.patch(path, first, { 'if-match': stale.headers.etag! }), 412, 'precondition_failed')
        seen.add(stale.headers.etag!).add(next.headers.etag!)
        await restore()
      }
      t.equal(seen.size, 6, path)
    }
  })

  await t.test('a row that was deleted and restored takes new versions, too', async (t) => {
    const ada = await openAccount()
    const petId = await newPet(ada)
    const { body: { id } } = await ada.post('/lab/snapshots', {})
    const stale = await ada.patch(`/pets/${petId}`, { name: 'A' })
    await ada.delete(`/pets/${petId}`)
    await ada.post(`/lab/snapshots/${id}/restore`, undefined)
    await ada.patch(`/pets/${petId}`, { name: 'B' })
    assertError(t, await ada.patch(`/pets/${petId}`, {}, { 'if-match': stale.headers.etag! }), 412, 'precondition_failed')
  })

  await t.test('the same seed fills the store with the same records', async (t) => {
    const stores: unknown[] = []
    for (let round = 0; round < 2; round++) {
      const ada = await openAccount()
      const reset = await ada.post('/lab/reset', { sample: { pets: 60, seed: 7 } })
      const { counts } = reset.body
      t.same([counts.categories, counts.pets], [5, 60])
      t.ok(counts.orders > 5 && counts.inventory > 40, JSON.stringify(counts))
      const { body: pets } = await ada.get('/pets?limit=100')
      const { body: orders } = await ada.get('/store/orders?limit=100')
      const { body: items } = await ada.get('/inventory?limit=100')
      t.same([pets.length, orders.length, items.length], [counts.pets, counts.orders, counts.inventory])
      for (const { quantity, status } of items) t.notOk(quantity === 0 && status === 'available')
      const first = pets[0].id
      stores.push({
        pets: pets.map(({ name, status }: any) => [name, status]),
        orders: orders.map(({ petId, quantity, complete }: any) => [petId - first, quantity, complete]),
        items: items.map(({ petId, quantity }: any) => [petId - first, quantity])
      })
    }
    t.same(stores[0], stores[1])
    const ada = await openAccount()
    await ada.post('/lab/reset', { sample: { pets: 60, seed: 8 } })
    const other = (await ada.get('/pets?limit=100')).body.map(({ name, status }: any) => [name, status])
    t.notSame(other, (stores[0] as any).pets, 'another seed gives others')
  })

  await t.test('each write beside a restore is either replaced, or comes after it', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 1_000)
    const { body: { id } } = await ada.post('/lab/snapshots', {})
    for (let round = 0; round < 6; round++) {
      const orders = Array.from({ length: 10 }, async () => await ada.post('/store/orders', { petId }))
      const creations = Array.from({ length: 5 }, async () => await ada.post('/messages', { message: 'x' }))
      const restore = ada.post(`/lab/snapshots/${id}/restore`, undefined)
      const answers = await Promise.all([...orders, ...creations, restore])
      for (const { status, text } of answers) t.ok(status < 300, text)
      const newest = Number((await ada.get('/events')).headers['event-id'])
      const { body: events } = await ada.get(`/events?after=${Math.max(0, newest - 50)}&limit=100`)
      const at = events.findLastIndex(({ type }: any) => type === 'store.replaced')
      const after = events.slice(at + 1)
      const placed = after.filter(({ type }: any) => type === 'order.placed').map(({ data }: any) => data.order.id)
      t.same((await ada.get('/store/orders?limit=100')).body.map(({ id }: any) => id), placed, 'orders after it')
      const sent = after.filter(({ type }: any) => type === 'message.created').map(({ data }: any) => data.message.id)
      t.same((await ada.get('/messages?limit=100')).body.map(({ id }: any) => id), sent, 'messages after it')
      t.equal((await ada.get(`/inventory/${petId}`)).body.quantity, 1_000 - placed.length, 'units are conserved')
    }
  })
})
