import t from 'tap'
import { startApp, type Answer } from '../support/app.ts'
import { assertResponse, assertError } from '../support/checks.ts'
import { loadFixtures, mergeTables } from '../support/fixture.ts'
import { itemOf, newOrder, newPet, petOf, setStatus, stocked } from '../support/fixtures.ts'
import { ifMatch, ifNoneMatch } from './fields.ts'

/** Changes of one record by operationId. */
const CHANGES = mergeTables((await loadFixtures()).map(({ changes }) => changes))

t.test('conditional requests', async (t) => {
  const { app, openAccount } = await startApp(t)

  await t.test('the table has every operation that changes one record', async (t) => {
    const paths = app.swagger().paths as Record<string, Record<string, { operationId: string }>>
    const changes = Object.values(paths).flatMap((methods) => Object.entries(methods))
      .filter(([method]) => ['patch', 'delete', 'put'].includes(method)).map(([, { operationId }]) => operationId)
    t.same(changes.sort(), Object.keys(CHANGES).sort())
  })

  for (const [name, prepare] of Object.entries(CHANGES)) {
    await t.test(`${name} changes only the version that the client read`, async (t) => {
      const ada = await openAccount()
      const { read, method, path, bodies } = await prepare(ada)
      const before = await ada.get(read)
      const tag = before.headers.etag!
      const change = async (headers: Record<string, string>, body = bodies[0]): Promise<Answer> =>
        await ada.request(method, path, { headers, body })
      for (const headers of [
        ifMatch('"other"'),
        ifMatch(`W/${tag}`),
        ifMatch('"a", "b"'),
        ifMatch('"*"'),
        ifMatch(''),
        ifNoneMatch(tag),
        ifNoneMatch('*'),
        ifNoneMatch(`W/${tag}`),
        ifNoneMatch(`"a", ${tag}`),
        { ...ifMatch(tag), ...ifNoneMatch(tag) },
        { ...ifMatch('"other"'), ...ifNoneMatch('"other"') }
      ]) {
        const answer = await change(headers)
        assertError(
          t,
          answer,
          412,
          'precondition_failed',
          headers['if-none-match'] === undefined ? 'If-Match' : /If-(None-)?Match/,
          JSON.stringify(headers)
        )
        t.equal(answer.headers.etag, undefined)
      }
      const unchanged = await ada.get(read)
      assertResponse(t, unchanged, 200, before.body, 'nothing happened')
      t.equal(unchanged.headers.etag, tag)

      const first = await change({ ...ifMatch(`"a", ${tag}`), ...ifNoneMatch('"a"') })
      if (method === 'DELETE') return assertResponse(t, first, 204)
      t.equal(first.status, 200)
      t.not(first.headers.etag, tag)
      assertError(t, await change(ifMatch(tag), bodies[1]), 412, 'precondition_failed')
      t.equal((await change(ifMatch('*'), bodies[1])).status, 200)
      t.not((await ada.get(read)).headers.etag, first.headers.etag)
    })
  }

  await t.test('the revocation of a key evaluates conditions, too', async (t) => {
    const ada = await openAccount()
    const made = await ada.post('/account/keys', {})
    const path = `/account/keys/${made.body.id}`
    assertError(t, await ada.delete(path, ifMatch('"other"')), 412, 'precondition_failed')
    assertError(t, await ada.delete(path, ifNoneMatch('*')), 412, 'precondition_failed')
    assertResponse(t, await ada.delete(path, ifMatch('*')), 204)
  })

  await t.test('a missing record gives 404, not 412', async (t) => {
    const ada = await openAccount()
    for (const headers of [ifMatch('"1"'), ifMatch('*')]) {
      assertError(t, await ada.patch('/categories/999999', { name: 'Dogs' }, headers), 404, 'category_not_found')
      assertError(t, await ada.delete('/categories/999999', headers), 404, 'category_not_found')
      assertError(t, await ada.patch('/pets/999999', { name: 'Rex' }, headers), 404, 'pet_not_found')
      assertError(t, await ada.delete('/pets/999999', headers), 404, 'pet_not_found')
      assertError(t, await ada.patch('/inventory/999999', { quantity: 1 }, headers), 404, 'pet_not_found')
      assertError(t, await ada.patch('/store/orders/999999', { complete: true }, headers), 404, 'order_not_found')
      assertError(t, await ada.delete('/store/orders/999999', headers), 404, 'order_not_found')
      assertError(t, await ada.delete('/account/keys/999999', headers), 404, 'api_key_not_found')
    }
  })

  await t.test('a stale tag gives 412, not 409', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 3)
    const { categoryId } = await petOf(ada, petId)
    const orderId = await newOrder(ada, petId, 1, true)
    await setStatus(ada, petId, 'sold')
    const conflicts: Array<[method: string, path: string, body: unknown, code: string]> = [
      ['DELETE', `/categories/${categoryId}`, undefined, 'category_in_use'],
      ['DELETE', `/pets/${petId}`, undefined, 'pet_in_use'],
      ['PATCH', `/pets/${petId}`, { status: 'available' }, 'invalid_status_transition'],
      ['PATCH', `/pets/${petId}`, { categoryId: 999_999 }, 'unknown_category'],
      ['PATCH', `/store/orders/${orderId}`, { complete: false }, 'order_already_shipped'],
      ['DELETE', `/store/orders/${orderId}`, undefined, 'order_already_shipped'],
      ['DELETE', `/account/keys/${(await ada.get('/account/keys')).body[0].id}`, undefined, 'last_api_key']
    ]
    for (const [method, path, body, code] of conflicts) {
      assertError(
        t,
        await ada.request(method, path, { headers: ifMatch('"other"'), body }),
        412,
        'precondition_failed',
        /\w/,
        code
      )
      assertError(t, await ada.request(method, path, { headers: ifMatch('*'), body }), 409, code)
    }
    assertError(
      t,
      await ada.patch(`/pets/${petId}`, { status: 'lost' }, ifMatch('"other"')),
      400,
      'validation_failed',
      'status'
    )
  })

  await t.test('before the first count no tag matches', async (t) => {
    const ada = await openAccount()
    const petId = await newPet(ada)
    for (const tag of ['*', '"1"', '"0-available"', '"1-available"']) {
      assertError(
        t,
        await ada.patch(`/inventory/${petId}`, { quantity: 5 }, ifMatch(tag)),
        412,
        'precondition_failed',
        'If-Match',
        tag
      )
    }
    assertError(t, await ada.get(`/inventory/${petId}`, ifNoneMatch('*')), 404, 'inventory_not_found')
    assertResponse(t, await ada.patch(`/inventory/${petId}`, { quantity: 5 }, ifNoneMatch('*')), 200, {
      petId,
      quantity: 5,
      status: 'available'
    })
    assertError(
      t,
      await ada.patch(`/inventory/${petId}`, { quantity: 6 }, ifNoneMatch('*')),
      412,
      'precondition_failed',
      'If-None-Match'
    )
    t.equal((await itemOf(ada, petId)).quantity, 5)
  })

  await t.test('of many simultaneous first counts, one succeeds', async (t) => {
    const ada = await openAccount()
    for (let round = 0; round < 5; round++) {
      const petId = await newPet(ada)
      const answers = await Promise.all(
        Array.from(
          { length: 10 },
          async (_, i) => await ada.patch(`/inventory/${petId}`, { quantity: i + 1 }, ifNoneMatch('*'))
        )
      )
      const [first, ...others] = answers.filter(({ status }) => status === 200)
      t.same(others, [])
      t.same(await itemOf(ada, petId), first!.body)
      t.equal(answers.filter(({ status }) => status === 412).length, 9)
    }
  })

  await t.test('fifty clients that read, modify and write lose no update', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 0)
    const path = `/inventory/${petId}`
    let refusals = 0
    await Promise.all(Array.from({ length: 50 }, async () => {
      for (;;) {
        const { body, headers } = await ada.get(path)
        const { status } = await ada.patch(path, { quantity: body.quantity + 1 }, ifMatch(headers.etag))
        if (status === 200) return
        if (status !== 412) throw new Error(`answered ${status}`)
        refusals++
      }
    }))
    t.equal((await itemOf(ada, petId)).quantity, 50)
    t.ok(refusals > 0, `${refusals} were refused`)
  })
})
