import t from 'tap'
import { startApp, type Answer } from '../support/app.ts'
import { assertResponse, replayableParts, assertListed, assertError, assertReplayed } from '../support/checks.ts'
import { database } from '../support/database.ts'
import { count, itemOf, newCategory, newOrder, newPet, stocked } from '../support/fixtures.ts'
import { eventually } from '../support/receiver.ts'
import { key } from './fields.ts'

t.test('Idempotency-Key', async (t) => {
  const running = await startApp(t)
  const { app, openAccount, withKey } = running

  await t.test('equal JSON values are the same request, whatever their notation', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 20)
    const send = async (body: string, headers = {}): Promise<Answer> =>
      await ada.request('POST', '/store/orders', {
        headers: { 'content-type': 'application/json', ...key('order'), ...headers },
        body
      })
    const first = await send(`{"petId":${petId},"quantity":2,"complete":false}`)
    t.equal(first.status, 201)
    for (const body of [
      `{"complete":false,"quantity":2,"petId":${petId}}`,
      ` {\n "petId" : ${petId} ,\t"quantity":2.0, "complete": false }\r\n`,
      `{"petId":${petId},"quantity":7,"quantity":2,"complete":false}`,
      `{"\\u0070etId":${petId},"quantity":2e0,"complete":false}`
    ]) assertReplayed(t, await send(body), first, body)
    assertReplayed(
      t,
      await send(`{"petId":${petId},"quantity":2,"complete":false}`, {
        'request-id': 'other',
        accept: 'text/html',
        'content-type': 'application/json; charset=utf-8'
      }),
      first,
      'headers do not count'
    )
    for (const body of [
      `{"petId":${petId},"quantity":2}`,
      `{"petId":${petId},"quantity":3,"complete":false}`,
      `{"petId":${petId},"quantity":2,"complete":true}`
    ]) {
      assertError(t, await send(body), 422, 'idempotency_key_reused', 'different request', body)
    }
    t.equal((await itemOf(ada, petId)).quantity, 18)
  })

  await t.test('equal paths are the same request, whatever their percent-encoding', async (t) => {
    const ada = await openAccount()
    const dogs = String(await newCategory(ada, 'Dogs'))
    const first = await ada.patch(`/categories/${dogs}`, { name: 'Hounds' }, key('k'))
    const escaped = [...dogs].map((digit) => `%3${digit}`).join('')
    assertReplayed(t, await ada.patch(`/categories/${escaped}`, { name: 'Hounds' }, key('k')), first, escaped)
  })

  await t.test('the service refuses another request with the same key, and it has no effect', async (t) => {
    const ada = await openAccount()
    const [dogs, cats] = [await newCategory(ada, 'Dogs'), await newCategory(ada, 'Cats')]
    const first = await ada.patch(`/categories/${dogs}`, { name: 'Hounds' }, key('k'))
    t.equal(first.status, 200)
    const others: Array<[method: string, path: string, body?: unknown]> = [
      ['PATCH', `/categories/${dogs}`, { name: 'Wolves' }],
      ['PATCH', `/categories/${cats}`, { name: 'Hounds' }],
      ['DELETE', `/categories/${dogs}`],
      ['POST', '/categories', { name: 'Hounds' }],
      ['DELETE', '/categories/999999'],
      ['POST', '/store/orders', { petId: 999_999 }]
    ]
    for (const [method, path, body] of others) {
      assertError(
        t,
        await ada.request(method, path, { headers: key('k'), body }),
        422,
        'idempotency_key_reused',
        'Use a new key',
        `${method} ${path}`
      )
    }
    assertError(
      t,
      await ada.post('/categories', { name: '' }, key('k')),
      400,
      'validation_failed',
      'name',
      'form is judged first'
    )
    t.same((await ada.get('/categories')).body, [{ id: dogs, name: 'Hounds' }, { id: cats, name: 'Cats' }])
    assertReplayed(
      t,
      await ada.patch(`/categories/${dogs}`, { name: 'Hounds' }, key('k')),
      first,
      'the first request still has it'
    )
  })

  await t.test(
    'of simultaneous different requests with one key, one succeeds and the others are refused',
    async (t) => {
      const ada = await openAccount()
      const answers = await Promise.all(
        Array.from({ length: 12 }, async (_, i) => await ada.post('/categories', { name: `Kind ${i % 4}` }, key('k')))
      )
      const done = answers.filter(({ status }) => status === 201)
      for (const answer of answers) if (answer.status !== 201) assertError(t, answer, 422, 'idempotency_key_reused')
      t.equal(done.length, 3)
      assertResponse(t, await ada.get('/categories'), 200, [done[0]!.body])
    }
  )

  await t.test('the service does not store a failed request', async (t) => {
    const ada = await openAccount()
    const petId = await newPet(ada)
    const order = { petId, quantity: 3 }
    for (let i = 0; i < 2; i++) {
      assertError(t, await ada.post('/store/orders', order, key('k')), 409, 'insufficient_stock')
    }
    assertError(
      t,
      await ada.post('/store/orders', { petId: 999_999 }, key('k')),
      409,
      'unknown_pet',
      /\w/,
      'the key is free for another request'
    )
    assertError(t, await ada.patch('/categories/999999', { name: 'Dogs' }, key('k')), 404, 'category_not_found')
    assertError(
      t,
      await ada.patch(`/pets/${petId}`, { name: 'Rex' }, { ...key('k'), 'if-match': '"0"' }),
      412,
      'precondition_failed'
    )
    assertError(t, await ada.post('/store/orders', {}, key('k')), 400, 'validation_failed')
    await count(ada, petId, 5)
    const placed = await ada.post('/store/orders', order, key('k'))
    t.equal(placed.status, 201)
    t.equal(placed.headers['idempotency-replayed'], undefined)
    assertReplayed(t, await ada.post('/store/orders', order, key('k')), placed, 'now it is')
    t.equal((await itemOf(ada, petId)).quantity, 2)
  })

  await t.test('failures and successes in one group do not mix their keys', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 5)
    const send = async (i: number): Promise<Answer> =>
      await ada.post('/store/orders', { petId, quantity: 2 }, key(`k${i}`))
    const answers = await Promise.all(Array.from({ length: 6 }, async (_, i) => await send(i)))
    t.equal(answers.filter(({ status }) => status === 201).length, 2)
    await count(ada, petId, 20)
    for (const [i, first] of answers.entries()) {
      const again = await send(i)
      if (first.status === 201) assertReplayed(t, again, first, `k${i}`)
      else t.same([again.status, again.headers['idempotency-replayed']], [201, undefined], `k${i}`)
    }
    t.equal((await ada.get(`/store/orders?petId=${petId}`)).body.length, 6)
  })

  await t.test('a key belongs to the account, not to one of its API keys', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const other = withKey((await ada.post('/account/keys', {})).body.apiKey)
    const first = await ada.post('/messages', { message: 'Hello' }, key('k'))
    assertReplayed(t, await other.post('/messages', { message: 'Hello' }, key('k')), first, 'another key')
    assertError(t, await other.post('/messages', { message: 'Bye' }, key('k')), 422, 'idempotency_key_reused')
    const foreign = await bob.post('/messages', { message: 'Hello' }, key('k'))
    t.same([foreign.status, foreign.headers['idempotency-replayed']], [201, undefined], 'another account')
    t.not(foreign.body.id, first.body.id)
    const [a, b] = await Promise.all([
      ada.post('/messages', { message: 'A' }, key('both')),
      bob.post('/messages', { message: 'B' }, key('both'))
    ])
    t.same([a.status, b.status, a.body.message, b.body.message], [201, 201, 'A', 'B'])
  })

  await t.test('a replay comes before 404, 412 and the other 409s', async (t) => {
    const ada = await openAccount()
    const added = await ada.post('/categories', { name: 'Dogs' }, key('add'))
    const path = `/categories/${added.body.id}`
    const changed = await ada.patch(path, { name: 'Hounds' }, { ...key('change'), 'if-match': added.headers.etag! })
    t.equal(changed.status, 200)
    assertReplayed(
      t,
      await ada.patch(path, { name: 'Hounds' }, { ...key('change'), 'if-match': added.headers.etag! }),
      changed,
      'its own tag is stale by now'
    )
    const deleted = await ada.delete(path, key('delete'))
    assertResponse(t, deleted, 204)
    assertReplayed(t, await ada.delete(path, key('delete')), deleted, 'deleted')
    assertReplayed(t, await ada.patch(path, { name: 'Hounds' }, key('change')), changed, 'changed, and gone since')
    assertReplayed(t, await ada.post('/categories', { name: 'Dogs' }, key('add')), added, 'added, and gone since')
    assertListed(t, await ada.get('/categories'), [])

    const petId = await stocked(ada, 1)
    const placed = await ada.post('/store/orders', { petId, complete: true }, key('order'))
    assertReplayed(
      t,
      await ada.post('/store/orders', { petId, complete: true }, key('order')),
      placed,
      'sold out since'
    )
  })

  await t.test('a replay returns the first answer, not the current state', async (t) => {
    const ada = await openAccount()
    const petId = await newPet(ada)
    const first = await ada.patch(`/inventory/${petId}`, { quantity: 5 }, key('count'))
    await newOrder(ada, petId, 2)
    const replay = await ada.patch(`/inventory/${petId}`, { quantity: 5 }, key('count'))
    assertReplayed(t, replay, first, 'the count')
    t.equal((await itemOf(ada, petId)).quantity, 3, 'and it was not counted again')
  })

  await t.test('the service stores an answer for 24 hours', async (t) => {
    const ada = await openAccount()
    const first = await ada.post('/messages', { message: 'Hello' }, key('k'))
    const account = BigInt(ada.account!)
    const [record] = await app.database.prisma.idempotencyRecord.findMany({ where: { accountId: account } })
    t.equal(record!.expiresAt.getTime() - record!.createdAt.getTime(), 24 * 60 * 60 * 1000)
    await app.database.prisma.idempotencyRecord.updateMany({
      where: { accountId: account },
      data: { expiresAt: new Date(Date.now() - 1000) }
    })
    const later = await ada.post('/messages', { message: 'Bye' }, key('k'))
    t.same(
      [later.status, later.body.message, later.headers['idempotency-replayed']],
      [201, 'Bye', undefined],
      'then the key is free'
    )
    assertReplayed(t, await ada.post('/messages', { message: 'Bye' }, key('k')), later, 'and taken again')
    t.not(later.body.id, first.body.id)
  })

  await t.test(
    'a key that another transaction uses for long gives idempotency_key_in_use',
    { skip: database === 'sqlite' && 'SQLite has one writer at a time' },
    async (t) => {
      const second = await startApp(t, { DATABASE_URL: running.config.DATABASE_URL })
      const ada = await openAccount()
      const there = second.withKey(ada.key!)
      t.equal((await there.get('/account')).status, 200)
      const now = new Date()
      await app.database.prisma
        .$transaction(async (prisma) => {
          // Simulates a process that has started the same request and not completed it.
          await prisma.idempotencyRecord.create({
            data: {
              accountId: BigInt(ada.account!),
              key: 'k',
              fingerprint: 'f',
              createdAt: now,
              expiresAt: new Date(now.getTime() + 60_000)
            }
          })
          const answer = await there.post('/messages', { message: 'Hello' }, key('k'))
          assertError(t, answer, 409, 'idempotency_key_in_use', 'Try again')
          t.match(answer.headers['retry-after'], /^\d+$/)
          throw new Error('the other gives up')
        }, { timeout: 120_000 })
        .catch(() => {})
      t.equal((await there.post('/messages', { message: 'Hello' }, key('k'))).status, 201, 'then the key is free')
    }
  )

  await t.test(
    'no other write waits for keys that another process uses, and a key that is freed in time is replayed',
    { skip: database === 'sqlite' && 'SQLite has one writer at a time' },
    async (t) => {
      const second = await startApp(t, { DATABASE_URL: running.config.DATABASE_URL })
      const [ada, bob] = [await openAccount(), await openAccount()]
      const [there, neighbour] = [ada, bob].map((client) => second.withKey(client.key!))
      t.equal((await there!.get('/account')).status, 200)
      t.equal((await neighbour!.get('/account')).status, 200)
      const now = new Date()
      const keys = ['a', 'b', 'c', 'd']
      await app.database.prisma.$transaction(async (prisma) => {
        // More keys than a process has connections for writes.
        await prisma.idempotencyRecord.createMany({
          data: keys.map((key) => ({
            accountId: BigInt(ada.account!),
            key,
            fingerprint: 'f',
            createdAt: now,
            expiresAt: new Date(now.getTime() + 60_000)
          }))
        })
        // A key is waited for up to two seconds. In an attempt on a busy machine, the other writes can take longer.
        await eventually(async () => {
          let refused = 0
          const waiting = keys.map(async (name) => {
            const answer = await there!.post('/messages', { message: 'Hello' }, key(name))
            refused++
            return answer
          })
          const others = await Promise.all(Array.from({ length: 20 }, async () =>
            await neighbour!.post('/categories', { name: 'Dogs' })))
          const before = refused
          t.same(new Set(others.map(({ status }) => status)), new Set([201]))
          for (const answer of await Promise.all(waiting)) assertError(t, answer, 409, 'idempotency_key_in_use')
          return before === 0
        }, 60_000, () => 'no write of the other account preceded those of the owner')
      }, { timeout: 120_000 })
      assertError(
        t, await there!.post('/messages', { message: 'Hello' }, key('a')), 422, 'idempotency_key_reused')
    }
  )

  await t.test(
    'a row that another transaction locks does not give idempotency_key_in_use',
    { skip: database === 'sqlite' && 'SQLite has one writer at a time' },
    async (t) => {
      const second = await startApp(t, { DATABASE_URL: running.config.DATABASE_URL })
      const ada = await openAccount()
      const id = await newCategory(ada, 'Dogs')
      const there = second.withKey(ada.key!)
      t.equal((await there.get('/account')).status, 200)
      await app.database.prisma.$transaction(
        async (prisma) => {
          await prisma.category.update({ where: { id }, data: { version: { increment: 0 } } })
          assertError(
            t,
            await there.patch(`/categories/${id}`, { name: 'Hounds' }, key('k')),
            503,
            'database_unavailable'
          )
        },
        { timeout: 120_000 }
      )
      assertResponse(t, await there.patch(`/categories/${id}`, { name: 'Hounds' }, key('k')), 200, {
        id,
        name: 'Hounds'
      })
    }
  )

  await t.test('two services on one database share their keys', async (t) => {
    const second = await startApp(t, { DATABASE_URL: running.config.DATABASE_URL })
    const ada = await openAccount()
    const there = second.withKey(ada.key!)
    const petId = await stocked(ada, 30)
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(Array.from({ length: 10 }, async (_, i) =>
        await (i % 2 === 0 ? ada : there).post('/store/orders', { petId }, key(`round-${round}`))))
      t.same(
        new Set(answers.map((answer) => JSON.stringify(replayableParts(answer)))).size,
        1,
        answers.map(({ text }) => text).join('\n')
      )
      t.equal(answers.filter(({ headers }) => headers['idempotency-replayed'] === undefined).length, 1)
      t.equal(answers[0]!.status, 201)
    }
    t.equal((await itemOf(there, petId)).quantity, 25)
  })
})
