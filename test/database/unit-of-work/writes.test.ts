import pg from 'pg'
import t from 'tap'
import type { Changes } from '../../../src/database/unit-of-work/success.ts'
import { createMessage, messageSecret } from '../../../src/messages/commands.ts'
import { startApp, type Answer, type Client, type TestApp } from '../../support/app.ts'
import { database } from '../../support/database.ts'
import { count, newCategory, newOrder, newPet, setStatus, stocked } from '../../support/fixtures.ts'
import { inOneGroup } from '../../support/groups.ts'

/** An account with a few records, whose events the process has written before. */
interface Store {
  client: Client
  category: number
  pets: Record<'stocked' | 'scarce' | 'pending' | 'uncounted', number>
}

async function openStore ({ openAccount }: TestApp): Promise<Store> {
  const client = await openAccount()
  const category = await newCategory(client)
  const pets = {
    stocked: await stocked(client, 9),
    scarce: await stocked(client, 1),
    pending: await stocked(client, 9),
    uncounted: await newPet(client)
  }
  await setStatus(client, pets.pending, 'pending')
  return { client, category, pets }
}

interface Case {
  path: string
  body: (store: Store) => object
  status: number
}

const CASES: Record<string, Case> = {
  'a pet': {
    path: '/pets', body: ({ category }) => ({ name: 'Rex', categoryId: category }), status: 201
  },
  'a pet with a status and special characters': {
    path: '/pets',
    body: ({ category }) => ({ name: 'R"e\\x\n\u2028🐕\u0001@account', categoryId: category, status: 'sold' }),
    status: 201
  },
  'a pet of an unknown category': {
    path: '/pets', body: () => ({ name: 'Rex', categoryId: 999_999_999 }), status: 409
  },
  'a message': {
    path: '/messages',
    body: () => ({ message: 'He said "hi" \\ \n\u2028🐕\u0001 @made.id' }),
    status: 201
  },
  'an order': {
    path: '/store/orders', body: ({ pets }) => ({ petId: pets.stocked }), status: 201
  },
  'an order with a quantity and a ship date': {
    path: '/store/orders',
    body: ({ pets }) => ({ petId: pets.stocked, quantity: 3, shipDate: '2027-01-01T12:00:00.1234+02:00' }),
    status: 201
  },
  'a complete order': {
    path: '/store/orders', body: ({ pets }) => ({ petId: pets.stocked, complete: true }), status: 201
  },
  'an order of too many units': {
    path: '/store/orders', body: ({ pets }) => ({ petId: pets.stocked, quantity: 5 }), status: 409
  },
  'an order of all units': {
    path: '/store/orders', body: ({ pets }) => ({ petId: pets.stocked, quantity: 4 }), status: 201
  },
  'an order of the last unit': {
    path: '/store/orders', body: ({ pets }) => ({ petId: pets.scarce }), status: 201
  },
  'an order of a pending pet': {
    path: '/store/orders', body: ({ pets }) => ({ petId: pets.pending }), status: 409
  },
  'an order of a pet that was never counted': {
    path: '/store/orders', body: ({ pets }) => ({ petId: pets.uncounted }), status: 409
  },
  'an order of an unknown pet': {
    path: '/store/orders', body: () => ({ petId: 999_999_999 }), status: 409
  }
}

t.test('a write gives the same answer, rows and events with an Idempotency-Key and without', async (t) => {
  const [service, other] = [await startApp(t), await startApp(t)]
  const [store, otherStore] = [await openStore(service), await openStore(other)]
  for (const [name, { path, body, status }] of Object.entries(CASES)) {
    const answer = await store.client.post(path, body(store))
    t.equal(answer.status, status, name)
    const key = { 'idempotency-key': name.replaceAll(' ', '-') }
    const expected = await otherStore.client.post(path, body(otherStore), key)
    t.same(withoutChance(partsOf(answer)), withoutChance(partsOf(expected)), `${name}: the answer`)
  }
  t.same(withoutChance(await contentsOf(service, store)), withoutChance(await contentsOf(other, otherStore)))
})

t.test('a foreign pet or category is unknown', async (t) => {
  const service = await startApp(t)
  const [ada, eve] = [await openStore(service), await openStore(service)]
  const order = await eve.client.post('/store/orders', { petId: ada.pets.stocked })
  t.match(order, { status: 409, body: { code: 'unknown_pet' } })
  const pet = await eve.client.post('/pets', { name: 'Rex', categoryId: ada.category })
  t.match(pet, { status: 409, body: { code: 'unknown_category' } })
})

t.test('in one group, each account sees its own rows only, whatever ids it names', async (t) => {
  const service = await startApp(t)
  const [ada, eve] = [await openStore(service), await openStore(service)]
  const { body: order } = await ada.client.post('/store/orders', { petId: ada.pets.stocked })
  const answers = await inOneGroup(service.app, [
    async () => await ada.client.post('/store/orders', { petId: ada.pets.stocked }),
    async () => await eve.client.post('/store/orders', { petId: ada.pets.stocked }),
    async () => await eve.client.patch(`/pets/${ada.pets.stocked}`, { name: 'Mine' }),
    async () => await eve.client.delete(`/store/orders/${order.id}`),
    async () => await ada.client.post('/store/orders', { petId: eve.pets.stocked }),
    async () => await eve.client.patch(`/inventory/${ada.pets.stocked}`, { quantity: 0 }),
    async () => await eve.client.post('/pets', { name: 'Rex', categoryId: ada.category }),
    async () => await ada.client.patch(`/categories/${ada.category}`, { name: 'Dogs' }),
    async () => await eve.client.delete(`/categories/${ada.category}`),
    async () => await eve.client.post('/store/orders', { petId: eve.pets.stocked })
  ])
  t.same(answers.map(({ status, body }) => status < 300 ? status : body.code), [
    201, 'unknown_pet', 'pet_not_found', 'order_not_found', 'unknown_pet', 'pet_not_found', 'unknown_category', 200,
    'category_not_found', 201
  ])
  t.match((await ada.client.get(`/inventory/${ada.pets.stocked}`)).body, { quantity: 7, status: 'available' })
  t.equal((await ada.client.get(`/pets/${ada.pets.stocked}`)).headers.etag, '"1"')
})

t.test('in one group, an account that names the order of another one does not hide it', async (t) => {
  const service = await startApp(t)
  const [ada, eve] = [await openStore(service), await openStore(service)]
  const petId = ada.pets.stocked
  const { body: { quantity } } = await ada.client.get(`/inventory/${petId}`)
  const { body: open } = await ada.client.post('/store/orders', { petId, quantity: 1 })
  const { body: last } = await ada.client.post('/store/orders', { petId, quantity: quantity - 1 })
  const answers = await inOneGroup(service.app, [
    async () => await eve.client.delete(`/store/orders/${open.id}`),
    async () => await ada.client.patch(`/store/orders/${last.id}`, { complete: true })
  ])
  t.same(answers.map(({ status }) => status), [404, 200])
  t.match((await ada.client.get(`/inventory/${petId}`)).body, { quantity: 0, status: 'pending' })
})

t.test('a message can have an id that is known before', async (t) => {
  const service = await startApp(t)
  const { client: { account } } = await openStore(service)
  const id = `msg_${'0'.repeat(26)}`
  const input = { message: { message: 'Hi' }, secret: messageSecret(), id }
  const { record } = await service.app.commit(createMessage, input, { account: account! })
  t.equal(record.id, id)
})

t.test('a group of writes of several accounts', async (t) => {
  const service = await startApp(t)
  const stores = [await openStore(service), await openStore(service)] as const
  const addPet = async ({ client, category }: Store): Promise<Answer> =>
    await client.post('/pets', { name: 'Rex', categoryId: category })
  const order = async ({ client, pets }: Store, quantity: number): Promise<Answer> =>
    await client.post('/store/orders', { petId: pets.stocked, quantity })
  const statusesOf = async (send: Array<() => Promise<Answer>>): Promise<number[]> =>
    (await inOneGroup(service.app, send)).map(({ status }) => status)

  const [ada, bob] = stores
  t.same(await statusesOf([
    async () => await addPet(bob),
    async () => await order(ada, 2),
    async () => await order(bob, 8),
    async () => await order(ada, 3),
    async () => await addPet(ada)
  ]),
  [201, 201, 201, 201, 201])
  t.same(await Promise.all(stores.map(async ({ client, pets }) =>
    (await client.get(`/inventory/${pets.stocked}`)).body.quantity)), [4, 1])

  const refused = [
    async () => await order(ada, 1), async () => await order(bob, 2), async () => await addPet(ada)
  ]
  t.same(await statusesOf(refused), [201, 409, 201], 'one is refused')
  t.equal((await ada.client.get(`/inventory/${ada.pets.stocked}`)).body.quantity, 3, 'the others are committed')

  const renamed = async (): Promise<Answer> => await ada.client.patch(`/pets/${ada.pets.stocked}`, { name: 'Max' })
  t.same(await statusesOf([async () => await addPet(ada), renamed]), [201, 200])
  t.same(await statusesOf(Array.from({ length: 9 }, () => async () => await addPet(ada))), Array(9).fill(201))
  for (const { client } of stores) {
    const { body: events } = await client.get('/events?limit=100')
    t.same(events.map(({ id }: { id: string }) => Number(id)), Array.from(events, (_, i) => i + 1), 'no gaps')
  }
})

t.test('in one group, a pet and an order can have the same id', async (t) => {
  const { app, openAccount } = await startApp(t)
  const ada = await openAccount()
  const other = await stocked(ada, 1_000)
  const held = await stocked(ada, 9)
  await newOrder(ada, held)
  while (await newOrder(ada, other) < held);
  const [counted, changed] = await inOneGroup(app, [
    async () => await ada.patch(`/inventory/${held}`, { quantity: 0 }),
    async () => await ada.patch(`/store/orders/${held}`, { shipDate: '2031-01-01T00:00:00Z' })
  ])
  t.match(changed, { status: 200, body: { id: held, petId: other } })
  t.match(counted, { status: 200, body: { petId: held, status: 'pending' } }, 'its open order holds the pet')
})

t.test('listeners get the changes of a write', async (t) => {
  const service = await startApp(t)
  const { client, category, pets } = await openStore(service)
  const seen: Changes[] = []
  service.app.onChange((changes) => { seen.push(changes) })
  const events = [client.account]
  await client.post('/pets', { name: 'Rex', categoryId: category })
  await client.post('/store/orders', { petId: pets.stocked })
  t.same(seen.splice(0), [{ events }, { events }])
  await client.post('/messages', { message: 'Hi' })
  t.same(seen, [{ events, deliveries: [] }], 'a message without webhooks is to be delivered')
})

t.test('ids of more than 32 bits are whole numbers in events', async (t) => {
  const service = await startApp(t)
  const { client, category } = await openStore(service)
  const last = 3_000_000_000
  for (const [table, column] of [['pets', 'id'], ['orders', 'id'], ['messages', 'position']]) {
    await service.app.database.prisma.$executeRawUnsafe(database === 'postgresql'
      ? `SELECT setval('${table}_${column}_seq', ${last})`
      : `INSERT OR REPLACE INTO sqlite_sequence (rowid, name, seq)
          SELECT (SELECT rowid FROM sqlite_sequence WHERE name = '${table}'), '${table}', ${last}`)
  }
  const { body: pet } = await client.post('/pets', { name: 'Rex', categoryId: category })
  t.equal(pet.id, last + 1)
  await count(client, pet.id, 2)
  const { body: order } = await client.post('/store/orders', { petId: pet.id })
  const { body: message } = await client.post('/messages', { message: 'Hi' })
  t.equal(message.id.slice(0, 14), `msg_${(last + 1).toString(36).padStart(10, '0')}`)
  const { text } = await client.get('/events?limit=100')
  t.ok(text.includes(`{"pet":${JSON.stringify(pet)}}`), text)
  const inventory = { petId: pet.id, quantity: 1, status: 'available' }
  t.ok(text.includes(JSON.stringify({ order, inventory })), text)
})

t.test('the count of a pet and its ETag follow orders', async (t) => {
  const service = await startApp(t)
  const { client, pets: { stocked: petId } } = await openStore(service)
  const { headers: { etag } } = await client.get(`/inventory/${petId}`)
  await client.post('/store/orders', { petId, quantity: 2 })
  const after = await client.get(`/inventory/${petId}`)
  t.equal(after.body.quantity, 7)
  t.not(after.headers.etag, etag)
  t.equal((await client.patch(`/inventory/${petId}`, { quantity: 1 }, { 'if-match': etag! })).status, 412)
})

t.test('a restored count gets a version above the floor', async (t) => {
  const service = await startApp(t)
  const { client, pets: { stocked: petId } } = await openStore(service)
  const { body: { id } } = await client.post('/lab/snapshots', {})
  const seen = new Set<string | undefined>()
  for (const quantity of [3, 4, 5, 9]) {
    await count(client, petId, quantity)
    seen.add((await client.get(`/inventory/${petId}`)).headers.etag)
  }
  t.match((await client.post(`/lab/snapshots/${id}/restore`, {})).status, /^20/)
  await newCategory(client)
  await client.post('/store/orders', { petId })
  const { headers: { etag }, body: { quantity } } = await client.get(`/inventory/${petId}`)
  t.equal(quantity, 8)
  t.notOk(seen.has(etag), 'an ETag that was used before the restore')
})

t.test('a write whose COMMIT fails leaves nothing, and loses no later write', async (t) => {
  const service = await startApp(t)
  const { client, category } = await openStore(service)
  const { database: opened } = service.app
  const execute = async (sql: string): Promise<void> => { await opened.prisma.$executeRawUnsafe(sql) }
  if (database === 'postgresql') {
    await execute(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF NEW.name = 'lost' THEN RAISE 'refused' USING ERRCODE = '53100'; END IF; RETURN NEW; END $$`)
    await execute(`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON pets DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION refuse()`)
  } else {
    // A foreign key that only COMMIT checks.
    await execute('CREATE TABLE doomed (id INTEGER REFERENCES accounts (id) DEFERRABLE INITIALLY DEFERRED)')
    await execute(`CREATE TRIGGER refuse AFTER INSERT ON pets WHEN new.name = 'lost'
      BEGIN INSERT INTO doomed VALUES (-1); END`)
  }
  const before = await opened.prisma.event.count()
  for (const name of ['kept 1', 'lost', 'kept 2']) {
    const { status } = await client.post('/pets', { name, categoryId: category })
    if (name === 'lost') t.ok(status >= 500, `answered ${status}`)
    else t.equal(status, 201)
  }
  const { body: pets } = await client.get(`/pets?categoryId=${category}`)
  t.same(pets.map(({ name }: { name: string }) => name), ['kept 1', 'kept 2'])
  t.equal(await opened.prisma.event.count(), before + 2)
})

const skip = database === 'sqlite' && 'one process serves a SQLite file'

t.test('a write sees what another process has changed', { skip }, async (t) => {
  const service = await startApp(t)
  const other = await startApp(t, { DATABASE_URL: service.config.DATABASE_URL })

  await t.test('a clock was moved', async (t) => {
    const { client, category } = await openStore(service)
    await inSession(service, async (session) => {
      await session.query('UPDATE accounts SET clock_offset_seconds = 400000000 WHERE id = $1', [client.account])
    })
    const year = new Date(Date.now() + 400_000_000_000).toISOString().slice(0, 4)
    t.equal((await client.post('/pets', { name: 'Rex', categoryId: category })).status, 201)
    t.equal((await client.post('/messages', { message: 'Hi' })).body.createdAt.slice(0, 4), year)
    const { body: events } = await client.get('/events?limit=100')
    const years = events.slice(-2).map(({ timestamp }: { timestamp: string }) => timestamp.slice(0, 4))
    t.same(years, [year, year])
  })

  await t.test('a webhook was added', async (t) => {
    const { client } = await openStore(service)
    await other.withKey(client.key!).post('/webhooks', { url: 'https://example.com/', events: ['message.created'] })
    const { body: { id } } = await client.post('/messages', { message: 'Hi' })
    t.equal((await service.app.database.prisma.message.findFirst({ where: { id } }))!.waiting, 1)
  })

  await t.test('the account was deleted', async (t) => {
    const { client } = await openStore(service)
    await inSession(service, async (session) => {
      await session.query('UPDATE accounts SET deleted_at = now() WHERE id = $1', [client.account])
      t.equal((await client.post('/messages', { message: 'Hi' })).status, 401)
      const { rows } = await session.query('SELECT 1 FROM messages WHERE account_id = $1', [client.account])
      t.same(rows, [])
    })
  })

  await t.test('rows are locked', async (t) => {
    const { client, category, pets: { stocked: petId } } = await openStore(service)
    await inSession(service, async (session) => {
      for (const [table, id, path, body] of [
        ['pets', petId, '/store/orders', { petId }],
        ['categories', category, '/pets', { name: 'Rex', categoryId: category }],
        ['accounts', client.account, '/messages', { message: 'Hi' }]
      ] as const) {
        await session.query('BEGIN')
        await session.query(`SELECT 1 FROM ${table} WHERE id = $1 FOR UPDATE`, [id])
        const sent = client.post(path, body)
        await waiting(session)
        await session.query('COMMIT')
        t.equal((await sent).status, 201)
      }
    })
  })
})

t.test('a write that names a foreign row waits for no lock of it', { skip }, async (t) => {
  const service = await startApp(t)
  const [ada, eve] = [await openStore(service), await openStore(service)]
  const { body: order } = await ada.client.post('/store/orders', { petId: ada.pets.stocked })
  await inSession(service, async (session) => {
    await session.query('BEGIN')
    for (const [table, id] of [['pets', ada.pets.stocked], ['orders', order.id], ['categories', ada.category]]) {
      await session.query(`SELECT 1 FROM ${table} WHERE id = $1 FOR UPDATE`, [id])
    }
    // Otherwise 503, when the time-out of a lock ends.
    t.equal((await eve.client.patch(`/pets/${ada.pets.stocked}`, { name: 'Mine' })).status, 404)
    t.equal((await eve.client.delete(`/store/orders/${order.id}`)).status, 404)
    t.equal((await eve.client.delete(`/categories/${ada.category}`)).status, 404)
    t.equal((await eve.client.post('/store/orders', { petId: ada.pets.stocked })).status, 409)
    await session.query('COMMIT')
  })
})

t.test('on PostgreSQL, writes of a group share statements', { skip }, async (t) => {
  const send = async ({ client, category }: Store, petId: number, i: number, key?: string): Promise<Answer> => {
    const headers = key === undefined ? {} : { 'idempotency-key': key }
    const order = { petId, quantity: 1 + i % 2, shipDate: SHIP_DATES[i] }
    if (i < 10) return await client.post('/store/orders', order, headers)
    if (i < 20) return await client.post('/pets', { name: `R"e\\x 🐕 ${i}`, categoryId: category }, headers)
    return await client.post('/messages', { message: `He said "${i}" @made.id` }, headers)
  }

  await t.test('and leave what they leave one after the other', async (t) => {
    const [service, other] = [await startApp(t), await startApp(t)]
    const [store, otherStore] = [await openStore(service), await openStore(other)]
    const [pets, otherPets]: [number[], number[]] = [[], []]
    for (let i = 0; i < 6; i++) {
      pets.push(await stocked(store.client, 9))
      otherPets.push(await stocked(otherStore.client, 9))
    }
    const all = Array.from({ length: 30 }, (_, i) => i)
    // The last four orders are of pets that others of the group order as well.
    const answers = await inOneGroup(service.app, all.map((i) => async () => await send(store, pets[i % 6]!, i)))
    for (const [i, answer] of answers.entries()) {
      const expected = await send(otherStore, otherPets[i % 6]!, i, `write-${i}`)
      t.same(withoutChance(partsOf(answer)), withoutChance(partsOf(expected)), `the answer to write ${i}`)
    }
    t.same(withoutChance(await contentsOf(service, store)), withoutChance(await contentsOf(other, otherStore)))
  })

  await t.test('in two processes at once', async (t) => {
    const services = [await startApp(t)]
    services.push(await startApp(t, { DATABASE_URL: services[0]!.config.DATABASE_URL }))
    const { client, category, pets } = await openStore(services[0]!)
    const count = 120
    await client.patch(`/inventory/${pets.stocked}`, { quantity: 1_000 })
    const created = await Promise.all(services.flatMap((service) => {
      const here = service.withKey(client.key!, client.account)
      return Array.from({ length: count }, async (_, i) => i % 4 === 0
        ? await here.post('/store/orders', { petId: pets.stocked })
        : await here.post('/pets', { name: `${i}`, categoryId: category }))
    }))
    t.same([...new Set(created.map(({ status }) => status))], [201])
    t.equal((await client.get(`/inventory/${pets.stocked}`)).body.quantity, 1_000 - count / 2)
    const all = await eventsOf(client)
    t.same(all.map(({ id }) => Number(id)), Array.from(all, (_, i) => i + 1), 'no gaps')
    const left = all.filter(({ type }) => type === 'order.placed').map(({ data }) => data.inventory.quantity)
    t.same(left, Array.from({ length: count / 2 }, (_, i) => 999 - i), 'each order has the count that it left')
    t.equal(all.filter(({ type }) => type === 'pet.created').length, 4 + count * 1.5)
  })

  await t.test('also if they are orders of the same pets', async (t) => {
    const [service, other] = [await startApp(t), await startApp(t)]
    const [store, otherStore] = [await openStore(service), await openStore(other)]
    const counts = [60, 9, 10]
    const [pets, otherPets]: [number[], number[]] = [[], []]
    for (const count of counts) {
      pets.push(await stocked(store.client, count))
      otherPets.push(await stocked(otherStore.client, count))
    }
    // 43 units of the first pet, and 9 of each other: the second has no more.
    const orders = [
      ...Array.from({ length: 22 }, (_, i) => ({ pet: 0, quantity: 1 + i % 3 })),
      ...[4, 1, 1, 3].flatMap((quantity) => [{ pet: 1, quantity }, { pet: 2, quantity }])
    ]
    const answers = await inOneGroup(service.app, orders.map(({ pet, quantity }) => async () =>
      await store.client.post('/store/orders', { petId: pets[pet], quantity })))
    t.same(answers.map(({ status }) => status), orders.map(() => 201))
    for (const [i, { pet, quantity }] of orders.entries()) {
      const order = { petId: otherPets[pet], quantity }
      await otherStore.client.post('/store/orders', order, { 'idempotency-key': `order-${i}` })
    }
    t.same(withoutChance(await contentsOf(service, store)), withoutChance(await contentsOf(other, otherStore)))
    t.equal((await store.client.get(`/inventory/${pets[0]}`)).body.quantity, 60 - 43)
  })

  await t.test('each by the clock of its account', async (t) => {
    const service = await startApp(t)
    const stores = [await openStore(service), await openStore(service), await openStore(service)]
    const write = async (i: number): Promise<Answer> => {
      const { client, pets, category } = stores[i % 3]!
      return i < 6
        ? await client.post('/store/orders', { petId: pets.stocked })
        : await client.post('/pets', { name: `of store ${i % 3}`, categoryId: category })
    }
    await inSession(service, async (session) => {
      // Another process has moved the clock of the second account.
      await session.query('UPDATE accounts SET clock_offset_seconds = 7200 WHERE id = $1', [stores[1]!.client.account])
    })
    const answers = await inOneGroup(service.app, Array.from({ length: 12 }, (_, i) => async () => await write(i)))
    t.same(answers.map(({ status }) => status), Array(12).fill(201))
    for (const [i, { client, pets }] of stores.entries()) {
      const { body: created } = await client.get('/pets?limit=100')
      t.same(created.slice(4).map(({ name }: { name: string }) => name), [`of store ${i}`, `of store ${i}`])
      t.equal((await client.get(`/inventory/${pets.stocked}`)).body.quantity, 7)
      const events = await eventsOf(client)
      t.same(events.map(({ id }) => Number(id)), Array.from(events, (_, i) => i + 1), 'no gaps')
      const times = events.slice(-4).map(({ timestamp }) => Date.parse(timestamp) - Date.now() > 3_600_000)
      t.same(times, Array(4).fill(i === 1), 'each by the clock of its account')
    }
    await inSession(service, async (session) => {
      await session.query('UPDATE accounts SET clock_offset_seconds = 14400 WHERE id = $1', [stores[1]!.client.account])
    })
    await inOneGroup(service.app, [7, 10, 13].map((i) => async () => await write(i)))
  })

  await t.test('and lock the counters of events in the order of the accounts', async (t) => {
    const service = await startApp(t)
    const stores = [await openStore(service), await openStore(service), await openStore(service)] as const
    const [ada, bob, cy] = stores
    await inSession(service, async (session) => await inSession(service, async (other) => {
      const lock = 'SELECT 1 FROM accounts WHERE id = $1 FOR NO KEY UPDATE'
      await session.query('BEGIN')
      await session.query(lock, [bob.client.account])
      const sent = inOneGroup(service.app, [
        async () => await ada.client.post('/messages', { message: 'Hi' }),
        async () => await bob.client.post('/pets', { name: 'Rex', categoryId: bob.category }),
        async () => await cy.client.post('/messages', { message: 'Hi' })
      ])
      await waiting(session)
      await other.query(`${lock} NOWAIT`, [cy.client.account])
      await t.rejects(other.query(`${lock} NOWAIT`, [ada.client.account]), { code: '55P03' })
      await session.query('COMMIT')
      t.same((await sent).map(({ status }) => status), [201, 201, 201])
    }))
  })

  await t.test('and see what an order of another process has left', async (t) => {
    const service = await startApp(t)
    const { client, pets: { stocked: petId } } = await openStore(service)
    await inSession(service, async (session) => {
      // The locks and the changes of another process's order.
      await session.query('BEGIN')
      await session.query('UPDATE accounts SET last_event_id = last_event_id + 1 WHERE id = $1', [client.account])
      await session.query('SELECT 1 FROM pets WHERE id = $1 FOR UPDATE', [petId])
      await session.query('UPDATE inventory_items SET quantity = quantity - 3 WHERE pet_id = $1', [petId])
      const sent = inOneGroup(service.app, Array.from({ length: 3 }, () => async () =>
        await client.post('/store/orders', { petId })))
      await waiting(session)
      await session.query('COMMIT')
      t.same((await sent).map(({ status }) => status), [201, 201, 201])
    })
    const orders = (await eventsOf(client)).filter(({ type }) => type === 'order.placed')
    t.same(orders.map(({ data }) => data.inventory.quantity), [5, 4, 3])
  })

  await t.test('and those of other accounts do not wait for a counter that another process has locked', async (t) => {
    const service = await startApp(t)
    const [ada, bob, cy] = [await openStore(service), await openStore(service), await openStore(service)]
    const hello = async ({ client }: Store): Promise<Answer> => await client.post('/messages', { message: 'Hi' })
    await inSession(service, async (session) => {
      await session.query('BEGIN')
      await session.query('SELECT 1 FROM accounts WHERE id = $1 FOR NO KEY UPDATE', [ada.client.account])
      const [late, ...others] = [ada, bob, cy].map(hello)
      t.same((await Promise.all(others)).map(({ status }) => status), [201, 201])
      await session.query('COMMIT')
      // A write waits up to 3 s for a lock.
      t.match(String((await late!).status), /^(201|503)$/)
    })
  })
})

async function eventsOf (client: Client): Promise<any[]> {
  const all: any[] = []
  for (;;) {
    const { body: page } = await client.get(`/events?limit=100&after=${all.at(-1)?.id ?? 0}`)
    if (page.length === 0) return all
    all.push(...page)
  }
}

/** The ship dates of some orders. */
const SHIP_DATES = [undefined, '2027-01-01T12:00:00.1234+02:00', undefined, '2027-01-02T12:00:00Z']

/** Runs statements on a connection of its own. */
async function inSession ({ config }: TestApp, use: (session: pg.Client) => Promise<void>): Promise<void> {
  const session = new pg.Client({ connectionString: config.DATABASE_URL })
  await session.connect()
  try {
    await use(session)
  } finally {
    await session.end()
  }
}

/** Maximum time until a write waits for a lock, in ms. */
const LOCK_WAIT_MS = 60_000

/** Resolves when another session waits for a lock. */
async function waiting (session: pg.Client): Promise<void> {
  const deadline = Date.now() + LOCK_WAIT_MS
  while (Date.now() < deadline) {
    // A transaction sees the activity as it was at its first look.
    await session.query('SELECT pg_stat_clear_snapshot()')
    const { rows } = await session.query(
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
    if (rows.length > 0) return
  }
  throw new Error('no write waits for the lock')
}

function partsOf ({ status, body, headers: { etag, location } }: Answer): object {
  return { status, body, etag, location }
}

/** Returns all that an account can read, and rows behind it. */
async function contentsOf ({ app }: TestApp, { client }: Store): Promise<object> {
  const paths = ['/categories', '/pets', '/inventory', '/store/orders', '/messages', '/events']
  const lists = await Promise.all(paths.map(async (path) => (await client.get(`${path}?limit=100`)).body as object[]))
  const where = { accountId: BigInt(client.account!) }
  const { prisma } = app.database
  return {
    lists,
    account: await prisma.account.findFirst({ where: { id: where.accountId }, select: { lastEventId: true } }),
    items: await prisma.inventoryItem.findMany({
      where, select: { petId: true, quantity: true, version: true }, orderBy: { petId: 'asc' }
    }),
    orders: await prisma.order.findMany({ where, omit: { accountId: true }, orderBy: { id: 'asc' } }),
    messages: await prisma.message.findMany({
      where, select: { message: true, status: true, waiting: true, version: true }, orderBy: { position: 'asc' }
    })
  }
}

/** Returns a value without times and random digits. */
function withoutChance (value: unknown): unknown {
  const text = JSON.stringify(value, (_name, member: unknown) => typeof member === 'bigint' ? Number(member) : member)
  return JSON.parse(text
    .replace(/(msg_[0-9a-z]{10})[0-9a-z]{16}/g, '$1')
    .replace(/"(createdAt|timestamp)":"[^"]*"/g, '"$1":"a time"')
    .replace(/127\.0\.0\.1:\d+/g, 'here'))
}
