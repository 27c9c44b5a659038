import t from 'tap'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { linkOf } from '../support/checks.ts'
import { newCategory, newOrder, newPet, count } from '../support/fixtures.ts'

/** A list, the records that a walk must find, and how other rows are added and deleted. */
interface Walked {
  path: string
  query: string
  sorts: string[]
  /** The permanent records, in the order of their creation. */
  stays: unknown[]
  add: () => Promise<unknown>
  /** Deletes an added row; absent for lists without deletion. */
  remove: () => Promise<unknown>
}

const LIMITS = [1, 2, 3, 7, 100]

/** Returns mulberry32, a generator that repeats its numbers for a seed, so that a failure can be reproduced. */
function randomNumbers (seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let x = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296
  }
}

function idOf (row: { id?: unknown, petId?: unknown }): unknown {
  return row.id ?? row.petId
}

/** A row that is added stays half of the time; the other rows are deleted one after the other. */
function churn (
  create: () => Promise<unknown>,
  destroy?: (id: unknown) => Promise<unknown>
): Pick<Walked, 'add' | 'remove'> & { added: unknown[] } {
  const added: unknown[] = []
  return {
    added,
    add: async () => {
      added.push(await create())
    },
    remove: async () => {
      if (destroy !== undefined && added.length > 0) await destroy(added.splice(Math.floor(added.length / 2), 1)[0])
    }
  }
}

/** Returns all lists of one store, each with permanent rows and, between them, rows that are added and deleted. */
async function lists (client: Client): Promise<Walked[]> {
  const deleteAt = (path: string) => async (id: unknown) => await done(client.delete(`${path}/${id}`))
  const idFrom = async (answer: Promise<Answer>): Promise<unknown> => (await done(answer)).body.id
  const dogs = await newCategory(client)
  const cats = await newCategory(client, 'Cats')
  const stock = await newPet(client, { categoryId: cats })
  const counted = async (): Promise<number> => {
    const id = await newPet(client, { categoryId: dogs })
    await count(client, id, 5)
    return id
  }
  await count(client, stock, 1_000_000)
  const pets = churn(async () => await newPet(client, { categoryId: dogs }), deleteAt('/pets'))
  const entries = churn(counted, deleteAt('/pets'))
  const orders = churn(async () => await newOrder(client, stock), deleteAt('/store/orders'))
  const categories = churn(async () => await newCategory(client), deleteAt('/categories'))
  const keys = churn(async () => await idFrom(client.post('/account/keys', {})), deleteAt('/account/keys'))
  const messages = churn(async () => await idFrom(client.post('/messages', { message: 'Hello' })))

  const stays = {
    pets: [] as unknown[],
    entries: [] as unknown[],
    orders: [] as unknown[],
    complete: [] as unknown[],
    categories: [dogs, cats] as unknown[],
    keys: [] as unknown[],
    messages: [] as unknown[]
  }
  stays.keys.push((await client.get('/account/keys')).body[0].id)
  for (let i = 0; i < 6; i++) {
    stays.pets.push(await newPet(client, { categoryId: dogs }))
    stays.entries.push(await counted())
    stays.orders.push(await newOrder(client, stock))
    stays.complete.push(await newOrder(client, stock, 1, true))
    stays.categories.push(await newCategory(client))
    stays.keys.push(await idFrom(client.post('/account/keys', {})))
    stays.messages.push(await idFrom(client.post('/messages', { message: 'Hello' })))
    await Promise.all([pets, entries, orders, categories, keys, messages].map(async ({ add }) => { await add() }))
  }
  const dogsThatStay = [...stays.pets, ...stays.entries].sort((a, b) => Number(a) - Number(b))
  const allOrders = [...stays.orders, ...stays.complete].sort((a, b) => Number(a) - Number(b))
  const sorts = ['', 'sort=id', 'sort=-id']
  return [
    { path: '/pets', query: '', sorts, stays: [stock, ...dogsThatStay], ...pets },
    { path: '/pets', query: `categoryId=${dogs}`, sorts, stays: dogsThatStay, ...pets },
    { path: '/pets', query: 'status=available', sorts, stays: [stock, ...dogsThatStay], ...pets },
    {
      path: '/pets',
      query: [...stays.pets, ...pets.added].map((id) => `id=${id}`).join('&'),
      sorts,
      stays: stays.pets,
      ...pets
    },
    { path: '/categories', query: '', sorts, stays: stays.categories, ...categories },
    { path: '/store/orders', query: '', sorts, stays: allOrders, ...orders },
    { path: '/store/orders', query: `petId=${stock}`, sorts, stays: allOrders, ...orders },
    { path: '/store/orders', query: 'complete=true', sorts, stays: stays.complete, ...orders },
    { path: '/store/orders', query: `complete=false&petId=${stock}`, sorts, stays: stays.orders, ...orders },
    { path: '/inventory', query: '', sorts: [''], stays: [stock, ...stays.entries], ...entries },
    { path: '/inventory', query: 'status=available', sorts: [''], stays: [stock, ...stays.entries], ...entries },
    {
      path: '/inventory',
      query: stays.entries.map((id) => `petId=${id}`).join('&'),
      sorts: [''],
      stays: stays.entries,
      ...entries
    },
    { path: '/messages', query: '', sorts, stays: stays.messages, ...messages },
    { path: '/account/keys', query: '', sorts, stays: stays.keys, ...keys }
  ]
}

async function done (answer: Promise<Answer>): Promise<Answer> {
  const { status, text } = await answer
  if (status >= 300) throw new Error(`the store answers ${status}: ${text}`)
  return await answer
}

function address (path: string, ...queries: string[]): string {
  return `${path}?${queries.filter((query) => query !== '').join('&')}`
}

t.test('a walk through a list under concurrent writes finds each permanent row exactly once, in order', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  const random = randomNumbers(seed)
  for (const { path, query, sorts, stays, add, remove } of await lists(client)) {
    for (const sort of sorts) {
      const limit = LIMITS[Math.floor(random() * LIMITS.length)]!
      const found: unknown[] = []
      for (let next: string | undefined = address(path, query, sort, `limit=${limit}`); next !== undefined;) {
        const changes = Array.from(
          { length: Math.floor(random() * 3) },
          async () => await (random() < 0.5 ? add() : remove())
        )
        // Some changes finish before the page is read, and others run at the same time.
        if (random() < 0.5) await Promise.all(changes)
        const page: Answer = await done(client.get(next))
        await Promise.all(changes)
        found.push(...page.body.map(idOf))
        next = linkOf(page, 'next')
      }
      const label = `${address(path, query, sort).slice(0, 60)} limit ${limit}, SEED=${seed}`
      t.equal(new Set(found).size, found.length, `${label}: nothing twice`)
      t.same(
        found.filter((id) => stays.includes(id)),
        sort === 'sort=-id' ? [...stays].reverse() : stays,
        `${label}: all that stayed`
      )
    }
  }
})

t.test('a page links to a next page exactly if there are more records', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  for (const { path, query, sorts } of await lists(client)) {
    for (const sort of sorts) {
      const { body: all } = await done(client.get(address(path, query, sort, 'limit=100')))
      for (const limit of [1, Math.floor(all.length / 2), all.length - 1, all.length, all.length + 1]) {
        const sizes: number[] = []
        const rows: unknown[] = []
        const first = address(path, query, sort, `limit=${limit}`)
        for (let next: string | undefined = first; next !== undefined;) {
          const page: Answer = await done(client.get(next))
          sizes.push(page.body.length)
          rows.push(...page.body)
          t.equal(linkOf(page, 'first'), first, 'every page knows the first')
          next = linkOf(page, 'next')
        }
        const whole = Math.ceil(all.length / limit)
        t.equal(sizes.length, whole, `${first.slice(0, 60)}: ${whole} pages of ${all.length} rows`)
        t.ok(sizes.slice(0, -1).every((size) => size === limit), 'all but the last are full')
        t.same(rows, all, 'the pages together are the list')
      }
    }
  }
})

t.test('an empty list is one page', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  for (const path of [
    '/pets',
    '/categories',
    '/store/orders',
    '/inventory',
    '/messages',
    '/pets?status=sold',
    '/inventory?petId=1',
    '/pets?id=1',
    '/account/keys?cursor=zzzzzzzzzz'
  ]) {
    const page = await client.get(path)
    t.same(
      { status: page.status, body: page.body, next: linkOf(page, 'next') },
      { status: 200, body: [], next: undefined },
      path
    )
    t.ok(linkOf(page, 'first'))
  }
})

t.test('a page has 20 rows, or as many as the requested ids', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  const categoryId = await newCategory(client)
  const ids = await Promise.all(Array.from({ length: 45 }, async () => await newPet(client, { categoryId })))
  t.equal((await client.get('/pets')).body.length, 20)
  const asked = ids.map((id) => `id=${id}`).join('&')
  t.equal((await client.get(`/pets?${asked}`)).body.length, 45)
  t.equal((await client.get(`/pets?${asked}&limit=7`)).body.length, 7)
})

t.test('links contain BASE_PATH and PUBLIC_URL', async (t) => {
  const bases: Array<[settings: Record<string, string>, before: string]> = [
    [{ BASE_PATH: '/shop/v1' }, '/shop/v1'],
    [{ PUBLIC_URL: 'https://pets.example' }, 'https://pets.example'],
    [{ PUBLIC_URL: 'https://pets.example:8443/behind', BASE_PATH: '/v1' }, 'https://pets.example:8443/behind/v1']
  ]
  for (const [settings, before] of bases) {
    const { nobody, withKey, app } = await startApp(t, settings)
    const base = settings['BASE_PATH'] ?? ''
    const account = await nobody.post(`${base}/accounts`, { name: 'A store' })
    t.equal(account.headers.location, `${before}/account`)
    const client = withKey(account.body.apiKey)
    const ids: unknown[] = []
    for (let i = 0; i < 5; i++) {
      const { body, headers } = await client.post(`${base}/categories`, { name: 'Dogs' })
      t.equal(headers.location, `${before}/categories/${body.id}`)
      ids.push(body.id)
    }
    const found: unknown[] = []
    for (let next: string | undefined = `${before}/categories?limit=2`; next !== undefined;) {
      t.ok(next.startsWith(`${before}/categories?`), next)
      const page: Answer = await client.get(next.replace(String(settings['PUBLIC_URL'] ?? ''), ''))
      found.push(...page.body.map(idOf))
      t.equal(linkOf(page, 'first'), `${before}/categories?limit=2`)
      next = linkOf(page, 'next')
    }
    t.same(found, ids)
    t.match((await client.get(`${base}/pets/4711`)).headers.link, `<${before}/pets?id=4711>; rel="successor-version"`)
    t.equal((await nobody.get('/livez')).status, 200, 'service routes stay where they are')
    if (base !== '') t.equal((await client.get('/categories')).status, 404)
    await app.close()
  }
})
