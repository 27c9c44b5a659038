import t from 'tap'
import { startApp } from '../support/app.ts'
import { assertResponse, linkOf, assertListed, assertError, assertRejectsInput, walk } from '../support/checks.ts'
import { itemOf, newOrder, newPet, petOf, setStatus, stocked } from '../support/fixtures.ts'

const UNKNOWN = '9223372036854775807'
const SHIP_DATE = '2026-12-24T18:00:00.000Z'

t.test('orders', async (t) => {
  const running = await startApp(t)
  const { openAccount } = running

  await t.test('bad input is refused with the field and the rule', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 5)
    const orderId = await newOrder(ada, petId)
    await assertRejectsInput(t, async (body) => await ada.post('/store/orders', body), [
      [{}, 'petId is required'],
      [{ quantity: 1 }, 'petId is required'],
      [{ petId: null }, 'petId must be an integer'],
      [{ petId: String(petId) }, 'petId must be an integer'],
      [{ petId: 0 }, 'petId must be 1 or more'],
      [{ petId, quantity: 0 }, 'quantity must be 1 or more'],
      [{ petId, quantity: -1 }, 'quantity must be 1 or more'],
      [{ petId, quantity: 2_147_483_648 }, 'quantity must be 2147483647 or less'],
      [{ petId, quantity: 1.5 }, 'quantity must be an integer'],
      [{ petId, quantity: '1' }, 'quantity must be an integer'],
      [{ petId, quantity: null }, 'quantity must be an integer'],
      [{ petId, complete: 'true' }, 'complete must be a boolean'],
      [{ petId, complete: null }, 'complete must be a boolean'],
      [{ petId, shipDate: null }, 'shipDate must be a string'],
      [{ petId, shipDate: '2026-12-24' }, 'shipDate must be an RFC 3339 date'],
      [{ petId, shipDate: '2026-12-24T18:00:00' }, 'shipDate must be an RFC 3339 date'],
      [{ petId, id: 21 }, '"id" is not allowed']
    ])
    await assertRejectsInput(t, async (body) => await ada.patch(`/store/orders/${orderId}`, body), [
      [{ complete: null }, 'complete must be a boolean'],
      [{ complete: 1 }, 'complete must be a boolean'],
      [{ shipDate: 'soon' }, 'shipDate must be an RFC 3339 date'],
      [{ shipDate: 5 }, 'shipDate must be'],
      [{ quantity: 2 }, '"quantity" is not allowed'],
      [{ petId }, '"petId" is not allowed']
    ])
    await assertRejectsInput(t, async (query) => await ada.get(`/store/orders?${query}`), [
      ['sort=shipDate', 'sort'],
      ['petId=0', 'petId'],
      ['petId=1&petId=2', 'petId'],
      ['complete=1', 'complete'],
      ['complete=TRUE', 'complete'],
      ['complete=true&complete=true', 'complete'],
      ['status=open', '"status" is not allowed']
    ])
    assertListed(t, await ada.get('/store/orders'), [orderId], 'nothing was ordered')
    t.equal((await itemOf(ada, petId)).quantity, 4)
  })

  await t.test('an order takes its units at once, one unless it says otherwise', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 10)
    const placed = await ada.post('/store/orders', { petId })
    const { id } = placed.body
    assertResponse(t, placed, 201, { id, petId, quantity: 1, complete: false })
    t.match(placed.headers, {
      location: `/store/orders/${id}`,
      etag: /^"[^"]+"$/,
      'cache-control': 'private, no-cache'
    })
    assertResponse(t, await ada.get(`/inventory/${petId}`), 200, { petId, quantity: 9, status: 'available' })

    const read = await ada.get(`/store/orders/${id}`)
    assertResponse(t, read, 200, placed.body)
    t.equal(read.headers.etag, placed.headers.etag)
    assertResponse(t, await ada.get(`/store/orders/${id}`, { 'if-none-match': read.headers.etag! }), 304)
    const head = await ada.request('HEAD', `/store/orders/${id}`)
    t.same([head.status, head.text, head.headers.etag], [200, '', read.headers.etag])

    const full = await ada.post('/store/orders', {
      petId,
      quantity: 3,
      shipDate: '2026-12-24T19:00:00.0009+01:00',
      complete: true
    })
    assertResponse(t, full, 201, { id: full.body.id, petId, quantity: 3, shipDate: SHIP_DATE, complete: true })
    assertResponse(t, await ada.get(`/store/orders/${full.body.id}`), 200, full.body)
    t.equal((await itemOf(ada, petId)).quantity, 6)
    const past = await ada.post('/store/orders', { petId, shipDate: '0001-01-01T00:00:00Z' })
    t.equal(past.body.shipDate, '0001-01-01T00:00:00.000Z', 'a ship date may lie in the past')
  })

  await t.test('the last unit holds the pet while an order is open, and sells it otherwise', async (t) => {
    const ada = await openAccount()
    // [units ordered before and still open, the order of the last unit is complete, status afterwards]
    const table: Array<[before: boolean, complete: boolean, status: string]> = [
      [false, false, 'pending'], [false, true, 'sold'], [true, false, 'pending'], [true, true, 'pending']
    ]
    for (const [before, complete, status] of table) {
      const petId = await stocked(ada, 3)
      if (before) await newOrder(ada, petId, 1)
      t.equal((await itemOf(ada, petId)).status, 'available')
      await newOrder(ada, petId, before ? 2 : 3, complete)
      t.same(await itemOf(ada, petId), { petId, quantity: 0, status })
      t.equal((await petOf(ada, petId)).status, status)
    }
  })

  await t.test('orders that empty the stock together find the orders that are open', async (t) => {
    const ada = await openAccount()
    for (const [before, status] of [[true, 'pending'], [false, 'sold']] as const) {
      const petId = await stocked(ada, 4)
      if (before) await newOrder(ada, petId, 1)
      // They come in one group, and none of them takes all that is left.
      await Promise.all(Array.from({ length: before ? 3 : 4 }, async () => await newOrder(ada, petId, 1, true)))
      t.same(await itemOf(ada, petId), { petId, quantity: 0, status })
    }
  })

  await t.test('an order is refused for an unknown pet, then for its status, then for its stock', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const foreign = await stocked(bob, 3)
    for (const petId of [foreign, 999_999, 2 ** 53, 1e300]) {
      assertError(
        t,
        await ada.post('/store/orders', { petId, quantity: 5 }),
        409,
        'unknown_pet',
        'petId',
        String(petId)
      )
    }
    for (const status of ['pending', 'sold']) {
      const [never, some] = [await newPet(ada, { status }), await stocked(ada, 3)]
      await setStatus(ada, some, status)
      for (const [petId, quantity] of [[never, 1], [some, 1], [some, 3], [some, 4]] as const) {
        assertError(
          t,
          await ada.post('/store/orders', { petId, quantity }),
          409,
          'pet_not_available',
          status,
          `${quantity} of ${status}`
        )
      }
    }
    const soldOut = await stocked(ada, 2)
    await newOrder(ada, soldOut, 2)
    assertError(t, await ada.post('/store/orders', { petId: soldOut }), 409, 'pet_not_available', 'pending')

    assertError(
      t,
      await ada.post('/store/orders', { petId: await newPet(ada) }),
      409,
      'insufficient_stock',
      'never been counted'
    )
    const some = await stocked(ada, 3)
    for (const complete of [false, true]) {
      assertError(
        t,
        await ada.post('/store/orders', { petId: some, quantity: 4, complete }),
        409,
        'insufficient_stock',
        '3 in stock'
      )
    }
    t.same(
      await itemOf(ada, some),
      { petId: some, quantity: 3, status: 'available' },
      'a refused order changes nothing'
    )
    t.equal((await itemOf(bob, foreign)).quantity, 3)
    t.equal((await ada.get('/store/orders')).body.length, 1)
  })

  await t.test('of many orders at once, no more succeed than there are units', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 10)
    const answers = await Promise.all(
      Array.from({ length: 30 }, async () => await ada.post('/store/orders', { petId, quantity: 3 }))
    )
    const placed = answers.filter(({ status }) => status === 201)
    t.equal(placed.length, 3)
    for (const answer of answers) {
      if (answer.status !== 201) assertError(t, answer, 409, 'insufficient_stock', '1 in stock')
    }
    t.same(await itemOf(ada, petId), { petId, quantity: 1, status: 'available' })
    assertListed(
      t,
      await ada.get(`/store/orders?petId=${petId}`),
      placed.map(({ body }) => body.id).sort((a, b) => a - b)
    )
  })

  await t.test('filters narrow the list together', async (t) => {
    const ada = await openAccount()
    const [rex, minka] = [await stocked(ada, 10), await stocked(ada, 10)]
    const [a, b, c, d] = [
      await newOrder(ada, rex),
      await newOrder(ada, minka, 2),
      await newOrder(ada, rex, 1, true),
      await newOrder(ada, minka, 1, true)
    ]
    const table: Array<[query: string, ids: number[]]> = [
      ['', [a, b, c, d]],
      ['sort=-id', [d, c, b, a]],
      [`petId=${rex}`, [a, c]],
      ['complete=true', [c, d]],
      ['complete=false', [a, b]],
      [`complete=false&petId=${minka}`, [b]],
      [`complete=true&petId=${minka}&sort=-id`, [d]],
      [`petId=${UNKNOWN}`, []]
    ]
    for (const [query, ids] of table) assertListed(t, await ada.get(`/store/orders?${query}`), ids, query)
    assertResponse(t, await ada.get(`/store/orders?petId=${minka}`), 200, [
      { id: b, petId: minka, quantity: 2, complete: false }, { id: d, petId: minka, quantity: 1, complete: true }
    ])
    const page = await ada.get('/store/orders?limit=3')
    assertListed(t, page, [a, b, c])
    t.equal(linkOf(page, 'first'), '/store/orders?limit=3')
    for (const query of [
      'limit=1',
      `limit=1&petId=${rex}`,
      'limit=1&complete=true',
      'limit=1&complete=false&sort=-id'
    ]) {
      t.same(
        await walk(ada, `/store/orders?${query}`),
        (await ada.get(`/store/orders?${query.slice('limit=1'.length + 1)}`)).body,
        query
      )
    }
  })

  await t.test('pages of one pet have its open and its completed orders in the order of their ids', async (t) => {
    const ada = await openAccount()
    const [rex, minka] = [await stocked(ada, 10), await stocked(ada, 10)]
    const idsOf = async (path: string): Promise<number[]> =>
      (await walk(ada, path) as Array<{ id: number }>).map(({ id }) => id)
    const ids: number[] = []
    for (const complete of [true, false, false, true, true, true, true]) {
      ids.push(await newOrder(ada, rex, 1, complete))
      await newOrder(ada, minka, 1, !complete)
    }
    for (let limit = 1; limit <= ids.length + 1; limit++) {
      const path = `/store/orders?petId=${rex}&limit=${limit}`
      t.same(await idsOf(path), ids, `upwards, ${limit} at a time`)
      t.same(await idsOf(`${path}&sort=-id`), ids.toReversed(), `downwards, ${limit} at a time`)
    }
    assertListed(t, await ada.get(`/store/orders?petId=${rex}&limit=6`), ids.slice(0, 6))
    assertListed(t, await (await openAccount()).get(`/store/orders?petId=${rex}`), [])
  })

  await t.test('an order that is not there is not found', async (t) => {
    const ada = await openAccount()
    for (const id of ['999999', '9007199254740993', UNKNOWN]) {
      assertError(t, await ada.get(`/store/orders/${id}`), 404, 'order_not_found')
      assertError(t, await ada.patch(`/store/orders/${id}`, { complete: true }), 404, 'order_not_found')
      assertError(t, await ada.delete(`/store/orders/${id}`), 404, 'order_not_found')
    }
  })
})
