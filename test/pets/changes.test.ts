import t from 'tap'
import { startApp } from '../support/app.ts'
import { assertResponse, assertListed, assertError } from '../support/checks.ts'
import { count, newCategory, newOrder, newPet, petOf, setStatus, stocked } from '../support/fixtures.ts'

const UNKNOWN = '9223372036854775807'

t.test('pets', async (t) => {
  const { openAccount } = await startApp(t)

  await t.test('a patch changes the fields it names and leaves the others', async (t) => {
    const ada = await openAccount()
    const [dogs, cats] = [await newCategory(ada, 'Dogs'), await newCategory(ada, 'Cats')]
    const added = await ada.post('/pets', { name: 'Rex', categoryId: dogs })
    const { id } = added.body
    const path = `/pets/${id}`
    let tag = added.headers.etag
    const steps: Array<[patch: object, pet: object]> = [
      [{ name: 'Waldi' }, { id, name: 'Waldi', categoryId: dogs, status: 'available' }],
      [{ categoryId: cats }, { id, name: 'Waldi', categoryId: cats, status: 'available' }],
      [{ status: 'pending' }, { id, name: 'Waldi', categoryId: cats, status: 'pending' }],
      [{ name: 'Rex', categoryId: dogs, status: 'sold' }, { id, name: 'Rex', categoryId: dogs, status: 'sold' }]
    ]
    for (const [patch, pet] of steps) {
      const changed = await ada.patch(path, patch)
      assertResponse(t, changed, 200, pet)
      t.not(changed.headers.etag, tag, 'a change has a new tag')
      t.equal(changed.headers['cache-control'], 'private, no-cache')
      tag = changed.headers.etag
      t.same(await petOf(ada, id), pet)
      t.equal((await ada.get(path)).headers.etag, tag)
    }
    for (const patch of [{}, { name: 'Rex' }, { status: 'sold' }, { name: 'Rex', categoryId: dogs, status: 'sold' }]) {
      const same = await ada.patch(path, patch)
      assertResponse(t, same, 200, steps.at(-1)![1])
      t.equal(same.headers.etag, tag, `${JSON.stringify(patch)} changes nothing`)
    }
  })

  await t.test('a patch is sent as JSON or as a merge patch', async (t) => {
    const ada = await openAccount()
    const petId = await newPet(ada)
    for (const type of [
      'application/json',
      'application/merge-patch+json',
      'Application/Merge-Patch+JSON; charset=utf-8',
      'application/json;charset=UTF-8'
    ]) {
      const changed = await ada.request('PATCH', `/pets/${petId}`, {
        headers: { 'content-type': type },
        body: JSON.stringify({ name: type })
      })
      t.same([changed.status, changed.body.name], [200, type])
    }
    const options = await ada.request('OPTIONS', `/pets/${petId}`)
    t.same([options.status, options.headers['accept-patch']], [204, 'application/json, application/merge-patch+json'])
    t.equal(options.headers.allow, 'GET, HEAD, PATCH, DELETE, OPTIONS')
    const wrong = await ada.request('PATCH', `/pets/${petId}`, {
      headers: { 'content-type': 'application/json-patch+json' },
      body: '[]'
    })
    assertError(t, wrong, 400, 'invalid_content_type', 'application/merge-patch+json')
    t.equal(wrong.headers['accept-patch'], 'application/json, application/merge-patch+json')
    t.equal((await ada.request('OPTIONS', '/pets')).headers['accept-patch'], undefined)
  })

  await t.test('a pet of a category that is not there, or is another store\'s, is refused', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const foreign = await newCategory(bob)
    const petId = await newPet(ada)
    const pet = await petOf(ada, petId)
    const gone = await newCategory(ada)
    await ada.delete(`/categories/${gone}`)
    const answers: string[] = []
    for (const categoryId of [foreign, gone, 999_999, 2 ** 53, 1e300]) {
      const [added, changed] = [
        await ada.post('/pets', { name: 'Rex', categoryId }),
        await ada.patch(`/pets/${petId}`, { categoryId, name: 'Waldi' })
      ]
      for (const answer of [added, changed]) {
        assertError(t, answer, 409, 'unknown_category', 'categoryId', String(categoryId))
        answers.push(answer.text)
      }
    }
    t.equal(new Set(answers).size, 1, 'and nobody can tell which of the two')
    t.same(await petOf(ada, petId), pet, 'nothing of a refused patch is kept')
    assertListed(t, await ada.get('/pets'), [petId])
  })

  await t.test('a status moves by hand only as the rules say', async (t) => {
    const ada = await openAccount()
    const categoryId = await newCategory(ada)
    const allowed: Record<string, string[]> = {
      available: ['pending', 'sold'],
      pending: ['available', 'sold'],
      sold: []
    }
    for (const from of Object.keys(allowed)) {
      for (const to of Object.keys(allowed)) {
        const petId = await newPet(ada, { categoryId, status: from })
        const answer = await ada.patch(`/pets/${petId}`, { name: 'Waldi', status: to })
        if (from === to || allowed[from]!.includes(to)) {
          assertResponse(t, answer, 200, { id: petId, name: 'Waldi', categoryId, status: to }, `${from} to ${to}`)
        } else {
          assertError(t, answer, 409, 'invalid_status_transition', new RegExp(`${from}.*${to}`), `${from} to ${to}`)
          t.same(await petOf(ada, petId), { id: petId, name: 'Rex', categoryId, status: from })
        }
      }
    }
  })

  await t.test('a pet with nothing in stock cannot be made available by hand', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 1)
    const orderId = await newOrder(ada, petId)
    t.equal((await petOf(ada, petId)).status, 'pending')
    assertError(
      t,
      await ada.patch(`/pets/${petId}`, { status: 'available' }),
      409,
      'invalid_status_transition',
      'stock is 0'
    )
    await ada.delete(`/store/orders/${orderId}`)
    t.equal((await petOf(ada, petId)).status, 'available', 'the cancelled order gave it back')
    await setStatus(ada, petId, 'pending')
    assertResponse(t, await ada.patch(`/pets/${petId}`, { status: 'available' }), 200, {
      ...(await petOf(ada, petId)),
      status: 'available'
    })
    await count(ada, petId, 0)
    assertError(t, await ada.patch(`/pets/${petId}`, { status: 'available' }), 409, 'invalid_status_transition', 'sold')
  })

  await t.test('a pet that any order names is not deleted', async (t) => {
    const ada = await openAccount()
    for (const complete of [false, true]) {
      const petId = await stocked(ada, 3)
      const orderId = await newOrder(ada, petId, 1, complete)
      assertError(t, await ada.delete(`/pets/${petId}`), 409, 'pet_in_use', 'The pet has orders')
      t.equal((await petOf(ada, petId)).id, petId)
      if (complete) continue
      await ada.delete(`/store/orders/${orderId}`)
      assertResponse(t, await ada.delete(`/pets/${petId}`), 204)
    }
  })

  await t.test('a deleted pet is gone, with its inventory entry', async (t) => {
    const ada = await openAccount()
    const petId = await stocked(ada, 3)
    const deleted = await ada.delete(`/pets/${petId}`)
    assertResponse(t, deleted, 204)
    t.equal(deleted.text, '')
    for (const answer of [
      await ada.get(`/pets/${petId}`),
      await ada.patch(`/pets/${petId}`, {}),
      await ada.delete(`/pets/${petId}`),
      await ada.get(`/inventory/${petId}`),
      await ada.patch(`/inventory/${petId}`, { quantity: 1 })
    ]) {
      assertError(t, answer, 404, 'pet_not_found')
    }
    assertError(t, await ada.post('/store/orders', { petId }), 409, 'unknown_pet')
    for (const path of ['/pets', `/pets?id=${petId}`, '/inventory', `/inventory?petId=${petId}`]) { assertResponse(t, await ada.get(path), 200, []) }
    t.ok(await newPet(ada) > petId, 'its id is not used again')
  })

  await t.test('a pet that is not there is not found', async (t) => {
    const ada = await openAccount()
    for (const id of ['999999', '9007199254740993', UNKNOWN]) {
      assertError(t, await ada.get(`/pets/${id}`), 404, 'pet_not_found')
      assertError(t, await ada.patch(`/pets/${id}`, { name: 'Rex' }), 404, 'pet_not_found')
      assertError(t, await ada.delete(`/pets/${id}`), 404, 'pet_not_found')
    }
  })
})
