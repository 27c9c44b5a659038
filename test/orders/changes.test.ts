import t from 'tap'
import { startApp } from '../support/app.ts'
import { assertResponse, assertError } from '../support/checks.ts'
import { count, itemOf, newOrder, setStatus, stocked } from '../support/fixtures.ts'

const SHIP_DATE = '2026-12-24T18:00:00.000Z'

t.test('orders', async (t) => {
  const { openAccount } = await startApp(t)

  await t.test('a patch changes the fields it names; null clears the ship date', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 10)
    const placed = await ada.post('/store/orders', { petId, quantity: 2 })
    const { id } = placed.body
    const path = `/store/orders/${id}`
    let tag = placed.headers.etag
    const steps: Array<[patch: object, order: object]> = [
      [{ shipDate: '2026-12-24T13:00:00-05:00' }, { id, petId, quantity: 2, shipDate: SHIP_DATE, complete: false }],
      [{ shipDate: null }, { id, petId, quantity: 2, complete: false }],
      [{ shipDate: SHIP_DATE, complete: true }, { id, petId, quantity: 2, shipDate: SHIP_DATE, complete: true }]
    ]
    for (const [patch, order] of steps) {
      const changed = await ada.patch(path, patch)
      assertResponse(t, changed, 200, order)
      t.not(changed.headers.etag, tag)
      tag = changed.headers.etag
      const read = await ada.get(path)
      assertResponse(t, read, 200, order)
      t.equal(read.headers.etag, tag)
      for (const same of [{}, patch]) {
        const again = await ada.patch(path, same)
        assertResponse(t, again, 200, order, 'changes nothing')
        t.equal(again.headers.etag, tag)
      }
    }
    t.equal((await itemOf(ada, petId)).quantity, 8, 'stock is not touched')
  })

  await t.test('completing changes no stock and sets no date', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 3)
    const orderId = await newOrder(ada, petId, 2)
    assertResponse(t, await ada.patch(`/store/orders/${orderId}`, { complete: true }), 200, {
      id: orderId,
      petId,
      quantity: 2,
      complete: true
    })
    t.same(await itemOf(ada, petId), { petId, quantity: 1, status: 'available' })
  })

  await t.test('the last open order to complete sells a pet with nothing in stock', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 3)
    const [first, last] = [await newOrder(ada, petId, 1), await newOrder(ada, petId, 2)]
    t.equal((await itemOf(ada, petId)).status, 'pending')
    await ada.patch(`/store/orders/${first}`, { complete: true })
    t.equal((await itemOf(ada, petId)).status, 'pending', 'one is still open')
    await ada.patch(`/store/orders/${last}`, { complete: true })
    t.same(await itemOf(ada, petId), { petId, quantity: 0, status: 'sold' })
  })

  await t.test('completing and cancelling leave a hold that was set by hand', async (t) => {
    const ada = await openAccount()
    for (const status of ['pending', 'sold']) {
      const petId = await stocked(ada, 3)
      const [first, last] = [await newOrder(ada, petId), await newOrder(ada, petId)]
      await setStatus(ada, petId, status)
      await ada.patch(`/store/orders/${first}`, { complete: true })
      t.same(await itemOf(ada, petId), { petId, quantity: 1, status })
      await ada.delete(`/store/orders/${last}`)
      t.same(await itemOf(ada, petId), { petId, quantity: 2, status })
    }
  })

  await t.test('a complete order changes no more, and is not cancelled', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 5)
    const placed = await ada.post('/store/orders', { petId, complete: true })
    const completed = await newOrder(ada, petId)
    await ada.patch(`/store/orders/${completed}`, { complete: true, shipDate: SHIP_DATE })
    for (const [id, patches] of [
      [placed.body.id, [{ complete: false }, { shipDate: SHIP_DATE }, { complete: true, shipDate: SHIP_DATE }]],
      [completed, [{ complete: false }, { shipDate: null }, { shipDate: '2026-12-25T18:00:00Z' }]]
    ] as const) {
      const before = await ada.get(`/store/orders/${id}`)
      for (const patch of patches) {
        assertError(
          t,
          await ada.patch(`/store/orders/${id}`, patch),
          409,
          'order_already_shipped',
          'changed',
          JSON.stringify(patch)
        )
      }
      assertError(t, await ada.delete(`/store/orders/${id}`), 409, 'order_already_shipped', 'cancelled')
      for (const patch of [
        {},
        { complete: true },
        before.body.shipDate === undefined ? { shipDate: null } : { shipDate: '2026-12-24T19:00:00+01:00' }
      ]) {
        const same = await ada.patch(`/store/orders/${id}`, patch)
        assertResponse(t, same, 200, before.body, JSON.stringify(patch))
        t.equal(same.headers.etag, before.headers.etag)
      }
    }
    t.equal((await itemOf(ada, petId)).quantity, 3)
  })

  await t.test('a cancelled order is gone, and its units are back', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 3)
    const orderId = await newOrder(ada, petId, 3)
    t.equal((await itemOf(ada, petId)).status, 'pending')
    const cancelled = await ada.delete(`/store/orders/${orderId}`)
    assertResponse(t, cancelled, 204)
    t.equal(cancelled.text, '')
    t.same(await itemOf(ada, petId), { petId, quantity: 3, status: 'available' })
    for (const answer of [
      await ada.get(`/store/orders/${orderId}`),
      await ada.patch(`/store/orders/${orderId}`, {}),
      await ada.delete(`/store/orders/${orderId}`)
    ]) {
      assertError(t, answer, 404, 'order_not_found')
    }
    assertResponse(t, await ada.get('/store/orders'), 200, [])
    t.ok(await newOrder(ada, petId) > orderId, 'ids are not used again')
  })

  await t.test('units come back also to a pet that was sold out by hand or by a count', async (t) => {
    const ada = await openAccount()
    const byHand = await stocked(ada, 1)
    const first = await newOrder(ada, byHand)
    await setStatus(ada, byHand, 'sold')
    await ada.delete(`/store/orders/${first}`)
    t.same(await itemOf(ada, byHand), { petId: byHand, quantity: 1, status: 'available' })
    const byCount = await stocked(ada, 5)
    const second = await newOrder(ada, byCount, 2)
    await count(ada, byCount, 0)
    await ada.delete(`/store/orders/${second}`)
    t.same(await itemOf(ada, byCount), { petId: byCount, quantity: 2, status: 'available' })
  })

  await t.test('of completing and cancelling an order at once, one happens', async (t) => {
    const ada = await openAccount()
    for (let round = 0; round < 8; round++) {
      const petId = await stocked(ada, 1)
      const path = `/store/orders/${await newOrder(ada, petId)}`
      const [completed, cancelled] = await Promise.all([ada.patch(path, { complete: true }), ada.delete(path)])
      if (completed.status === 200) {
        assertError(t, cancelled, 409, 'order_already_shipped')
        t.same(await itemOf(ada, petId), { petId, quantity: 0, status: 'sold' })
      } else {
        assertError(t, completed, 404, 'order_not_found')
        assertResponse(t, cancelled, 204)
        t.same(await itemOf(ada, petId), { petId, quantity: 1, status: 'available' })
      }
    }
  })
})
