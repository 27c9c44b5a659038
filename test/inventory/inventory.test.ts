import t from 'tap'
import { startApp } from '../support/app.ts'
import { assertResponse, linkOf, assertListed, assertError, assertRejectsInput, walk } from '../support/checks.ts'
import { count, itemOf, newOrder, newPet, petOf, setStatus, stocked } from '../support/fixtures.ts'

const UNKNOWN = '9223372036854775807'
const MOST = 2_147_483_647

t.test('inventory', async (t) => {
  const running = await startApp(t)
  const { openAccount } = running

  await t.test('bad input is refused with the field and the rule', async (t) => {
    const ada = await openAccount()
    const petId = await newPet(ada)
    await assertRejectsInput(t, async (body) => await ada.patch(`/inventory/${petId}`, body), [
      [{}, 'quantity is required'],
      [{ quantity: null }, 'quantity must be an integer'],
      [{ quantity: '5' }, 'quantity must be an integer'],
      [{ quantity: 5.5 }, 'quantity must be an integer'],
      [{ quantity: -1 }, 'quantity must be 0 or more'],
      [{ quantity: MOST + 1 }, 'quantity must be 2147483647 or less'],
      [{ quantity: 1, status: 'sold' }, '"status" is not allowed'],
      [{ quantity: 1, petId }, '"petId" is not allowed']
    ])
    await assertRejectsInput(t, async (query) => await ada.get(`/inventory?${query}`), [
      ['status=lost', 'status'],
      ['status=sold&status=sold', 'status'],
      ['petId=0', 'petId'],
      ['petId=x&petId=1', 'petId'],
      ['sort=id', '"sort" is not allowed'],
      ['id=1', '"id" is not allowed']
    ])
    assertResponse(t, await ada.get('/inventory'), 200, [], 'nothing was counted')
  })

  await t.test('the first count creates the entry, the next sets it', async (t) => {
    const ada = await openAccount()
    const petId = await newPet(ada)
    let tag: string | undefined
    for (const quantity of [5, 12, MOST, 1]) {
      const counted = await ada.patch(`/inventory/${petId}`, { quantity })
      assertResponse(t, counted, 200, { petId, quantity, status: 'available' })
      t.match(counted.headers.etag, /^"[^"]+"$/)
      t.not(counted.headers.etag, tag, 'a change has a new tag')
      tag = counted.headers.etag
      t.equal(counted.headers['cache-control'], 'private, no-cache')
      const read = await ada.get(`/inventory/${petId}`)
      assertResponse(t, read, 200, counted.body)
      t.equal(read.headers.etag, tag)
      assertResponse(t, await ada.get(`/inventory/${petId}`, { 'if-none-match': tag! }), 304)
      const again = await ada.patch(`/inventory/${petId}`, { quantity })
      assertResponse(t, again, 200, counted.body, 'the same count changes nothing')
      t.equal(again.headers.etag, tag)
    }
    const text = await ada.request('PATCH', `/inventory/${petId}`, {
      headers: { 'content-type': 'application/merge-patch+json' },
      body: '{"quantity": 5.0}'
    })
    assertResponse(t, text, 200, { petId, quantity: 5, status: 'available' }, '5.0 is an integer')
  })

  await t.test('a count above 0 makes a pet available, whatever held it', async (t) => {
    const ada = await openAccount()
    for (const status of ['available', 'pending', 'sold']) {
      const never = await newPet(ada, { status })
      assertResponse(t, await ada.patch(`/inventory/${never}`, { quantity: 3 }), 200, {
        petId: never,
        quantity: 3,
        status: 'available'
      })
      const counted = await stocked(ada, 3)
      if (status !== 'available') await setStatus(ada, counted, status)
      const before = await ada.get(`/inventory/${counted}`)
      t.equal(before.body.status, status, 'the entry shows the status of the pet')
      const same = await ada.patch(`/inventory/${counted}`, { quantity: 3 })
      assertResponse(
        t,
        same,
        200,
        { petId: counted, quantity: 3, status: 'available' },
        'also when it is the figure it had'
      )
      t.equal(
        same.headers.etag === before.headers.etag,
        status === 'available',
        'the tag is of the count and the status'
      )
      t.equal((await petOf(ada, counted)).status, 'available')
    }
  })

  await t.test('a count of 0 sells a pet, or holds it while orders are open', async (t) => {
    const ada = await openAccount()
    for (const status of ['available', 'pending', 'sold']) {
      const never = await newPet(ada, { status })
      assertResponse(
        t,
        await ada.patch(`/inventory/${never}`, { quantity: 0 }),
        200,
        { petId: never, quantity: 0, status: 'sold' },
        `${status}, never counted`
      )
      for (const [open, expected] of [[false, 'sold'], [true, 'pending']] as const) {
        const petId = await stocked(ada, 3)
        await newOrder(ada, petId, 1, !open)
        if (status !== 'available') await setStatus(ada, petId, status)
        assertResponse(
          t,
          await ada.patch(`/inventory/${petId}`, { quantity: 0 }),
          200,
          { petId, quantity: 0, status: expected },
          `${status}, ${open ? 'one' : 'none'} open`
        )
        t.equal((await petOf(ada, petId)).status, expected)
        assertResponse(t, await ada.patch(`/inventory/${petId}`, { quantity: 2 }), 200, {
          petId,
          quantity: 2,
          status: 'available'
        })
      }
    }
  })

  await t.test('stock may pass the largest count when units come back on top of one', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, MOST)
    for (let i = 0; i < 3; i++) {
      const orderId = await newOrder(ada, petId, i === 0 ? MOST : 1)
      await count(ada, petId, MOST)
      await ada.delete(`/store/orders/${orderId}`)
    }
    assertResponse(t, await ada.get(`/inventory/${petId}`), 200, { petId, quantity: MOST + 1, status: 'available' })

    const other = await stocked(ada, MOST)
    const orders: number[] = []
    for (let i = 0; i < 4; i++) {
      orders.push(await newOrder(ada, other, MOST))
      await count(ada, other, MOST)
    }
    for (const orderId of orders) assertResponse(t, await ada.delete(`/store/orders/${orderId}`), 204)
    assertResponse(t, await ada.get(`/inventory/${other}`), 200, {
      petId: other,
      quantity: 5 * MOST,
      status: 'available'
    })
    assertResponse(t, await ada.get(`/inventory?petId=${other}`), 200, [
      { petId: other, quantity: 5 * MOST, status: 'available' }
    ])
    await newOrder(ada, other, MOST)
    t.equal((await itemOf(ada, other)).quantity, 4 * MOST)
  })

  await t.test('the list goes by pet, and filters narrow it together', async (t) => {
    const ada = await openAccount()
    assertResponse(t, await ada.get('/inventory'), 200, [])
    const [one, two, three, never] = [await newPet(ada), await newPet(ada), await newPet(ada), await newPet(ada)]
    for (const petId of [three, one, two]) await count(ada, petId, 4)
    await setStatus(ada, two, 'pending')
    const item = (petId: number, status: string): object => ({ petId, quantity: 4, status })
    assertResponse(t, await ada.get('/inventory'), 200, [
      item(one, 'available'),
      item(two, 'pending'),
      item(three, 'available')
    ])
    const table: Array<[query: string, pets: number[]]> = [
      ['status=available', [one, three]],
      ['status=pending', [two]],
      ['status=sold', []],
      [`petId=${three}&petId=${one}&petId=${never}`, [one, three]],
      [`petId=${two}`, [two]],
      [`petId=${two}&petId=${one}&status=pending`, [two]],
      [`petId=${UNKNOWN}`, []],
      [`petId=${never}`, []]
    ]
    for (const [query, pets] of table) assertListed(t, await ada.get(`/inventory?${query}`), pets, query)
    const page = await ada.get('/inventory?limit=2')
    assertListed(t, page, [one, two])
    t.equal(linkOf(page, 'first'), '/inventory?limit=2')
    t.same(await walk(ada, '/inventory?limit=1'), (await ada.get('/inventory')).body)
    t.same(await walk(ada, '/inventory?limit=1&status=available'), (await ada.get('/inventory?status=available')).body)
  })

  await t.test('pets asked for by id fit one page', async (t) => {
    const ada = await openAccount()
    const pets: number[] = []
    for (let i = 0; i < 22; i++) pets.push(await stocked(ada, 1))
    const asked = pets.map((petId) => `petId=${petId}`).join('&')
    assertListed(t, await ada.get('/inventory'), pets.slice(0, 20))
    const list = await ada.get(`/inventory?${asked}`)
    assertListed(t, list, pets)
    t.equal(linkOf(list, 'next'), undefined)
    assertListed(t, await ada.get(`/inventory?${asked}&limit=5`), pets.slice(0, 5))
  })

  await t.test('a pet that was never counted has no entry yet', async (t) => {
    const ada = await openAccount()
    const petId = await newPet(ada)
    assertError(t, await ada.get(`/inventory/${petId}`), 404, 'inventory_not_found', 'never been counted')
    assertError(t, await ada.post('/store/orders', { petId }), 409, 'insufficient_stock', 'Count it first')
  })

  await t.test('a pet that is not there is not found', async (t) => {
    const ada = await openAccount()
    for (const id of ['999999', '9007199254740993', UNKNOWN]) {
      assertError(t, await ada.get(`/inventory/${id}`), 404, 'pet_not_found')
      assertError(t, await ada.patch(`/inventory/${id}`, { quantity: 1 }), 404, 'pet_not_found')
    }
  })
})
