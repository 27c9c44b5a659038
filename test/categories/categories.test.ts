import t from 'tap'
import { startApp } from '../support/app.ts'
import { assertResponse, linkOf, assertListed, assertError, assertRejectsInput, walk } from '../support/checks.ts'
import { newCategory, newPet } from '../support/fixtures.ts'

const UNKNOWN = '9223372036854775807'

t.test('categories', async (t) => {
  const running = await startApp(t)
  const { openAccount } = running

  await t.test('bad input is refused with the field and the rule', async (t) => {
    const ada = await openAccount()
    const id = await newCategory(ada)
    await assertRejectsInput(t, async (body) => await ada.post('/categories', body), [
      [{}, 'name is required'],
      [{ name: null }, 'name must be a string'],
      [{ name: '' }, 'name must have at least 1 character'],
      [{ name: 'x'.repeat(256) }, 'name must have at most 255 characters'],
      [{ name: 'Dogs', description: null }, 'description must be a string'],
      [{ name: 'Dogs', description: 'x'.repeat(2001) }, 'description must have at most 2000 characters'],
      [{ name: 'Dogs', description: 'a\u0000' }, 'U+0000'],
      [{ name: 'Dogs', id: 3 }, '"id" is not allowed']
    ])
    await assertRejectsInput(t, async (body) => await ada.patch(`/categories/${id}`, body), [
      [{ name: null }, 'name must be a string'],
      [{ name: '' }, 'name must have at least 1 character'],
      [{ description: 5 }, 'description must be'],
      [{ description: 'x'.repeat(2001) }, 'description must have at most 2000 characters'],
      [{ id }, '"id" is not allowed']
    ])
    await assertRejectsInput(t, async (query) => await ada.get(`/categories?${query}`), [
      ['sort=name', 'sort'],
      ['name=Dogs', '"name" is not allowed']
    ])
    assertResponse(t, await ada.get('/categories'), 200, [{ id, name: 'Dogs' }])
  })

  await t.test('a category is added, with its address and its entity tag', async (t) => {
    const ada = await openAccount()
    const added = await ada.post('/categories', { name: 'Dogs', description: 'Loyal and loud' })
    const { id } = added.body
    assertResponse(t, added, 201, { id, name: 'Dogs', description: 'Loyal and loud' })
    t.match(added.headers, { location: `/categories/${id}`, etag: /^"[^"]+"$/, 'cache-control': 'private, no-cache' })
    const read = await ada.get(`/categories/${id}`)
    assertResponse(t, read, 200, added.body)
    t.equal(read.headers.etag, added.headers.etag)
    const known = await ada.get(`/categories/${id}`, { 'if-none-match': read.headers.etag! })
    assertResponse(t, known, 304)
    const head = await ada.request('HEAD', `/categories/${id}`)
    t.same([head.status, head.text, head.headers.etag], [200, '', read.headers.etag])

    const bare = await ada.post('/categories', { name: 'Dogs' })
    assertResponse(t, bare, 201, { id: bare.body.id, name: 'Dogs' }, 'a name twice, and no description')
    assertResponse(t, await ada.get(`/categories/${bare.body.id}`), 200, bare.body)
    const empty = await ada.post('/categories', { name: 'Dogs', description: '' })
    assertResponse(
      t,
      await ada.get(`/categories/${empty.body.id}`),
      200,
      { id: empty.body.id, name: 'Dogs', description: '' },
      'an empty description is one'
    )
  })

  await t.test('a text comes back as it was sent', async (t) => {
    const ada = await openAccount()
    for (const description of [' ', 'Ré🐶\n"\\\u0001\u2028', '🐶'.repeat(2000)]) {
      const { body } = await ada.post('/categories', { name: 'Dogs', description })
      assertResponse(t, await ada.get(`/categories/${body.id}`), 200, { id: body.id, name: 'Dogs', description })
    }
  })

  await t.test('a list goes by id, in pages', async (t) => {
    const ada = await openAccount()
    assertResponse(t, await ada.get('/categories'), 200, [])
    const added: any[] = []
    for (const name of ['Dogs', 'Cats', 'Birds', 'Fish', 'Mice']) {
      added.push((await ada.post('/categories', { name })).body)
    }
    assertResponse(t, await ada.get('/categories'), 200, added)
    assertResponse(t, await ada.get('/categories?sort=-id'), 200, [...added].reverse())
    const page = await ada.get('/categories?limit=2')
    assertListed(t, page, added.slice(0, 2).map(({ id }) => id))
    t.equal(linkOf(page, 'first'), '/categories?limit=2')
    t.same(await walk(ada, '/categories?limit=2'), added)
    t.same(await walk(ada, '/categories?limit=2&sort=-id'), [...added].reverse())
  })

  await t.test('a patch changes the fields it names; null clears the description', async (t) => {
    const ada = await openAccount()
    const added = await ada.post('/categories', { name: 'Dogs' })
    const { id } = added.body
    const path = `/categories/${id}`
    let tag = added.headers.etag
    const steps: Array<[patch: object, category: object]> = [
      [{ description: 'Loyal' }, { id, name: 'Dogs', description: 'Loyal' }],
      [{ name: 'Hounds' }, { id, name: 'Hounds', description: 'Loyal' }],
      [{ description: '' }, { id, name: 'Hounds', description: '' }],
      [{ description: null }, { id, name: 'Hounds' }],
      [{ name: 'Dogs', description: 'Loud' }, { id, name: 'Dogs', description: 'Loud' }]
    ]
    for (const [patch, category] of steps) {
      const changed = await ada.patch(path, patch)
      assertResponse(t, changed, 200, category)
      t.not(changed.headers.etag, tag)
      tag = changed.headers.etag
      const read = await ada.get(path)
      assertResponse(t, read, 200, category)
      t.equal(read.headers.etag, tag)
      for (const same of [{}, patch]) {
        const again = await ada.patch(path, same)
        assertResponse(t, again, 200, category, 'changes nothing')
        t.equal(again.headers.etag, tag)
      }
    }
    const merged = await ada.request('PATCH', path, {
      headers: { 'content-type': 'application/merge-patch+json' },
      body: '{"description":null}'
    })
    assertResponse(t, merged, 200, { id, name: 'Dogs' })
  })

  await t.test('a category is not deleted while a pet is in it', async (t) => {
    const ada = await openAccount()
    const [dogs, cats] = [await newCategory(ada, 'Dogs'), await newCategory(ada, 'Cats')]
    const rex = await newPet(ada, { categoryId: dogs })
    assertError(t, await ada.delete(`/categories/${dogs}`), 409, 'category_in_use', 'still has pets')
    await ada.patch(`/pets/${rex}`, { categoryId: cats })
    const deleted = await ada.delete(`/categories/${dogs}`)
    assertResponse(t, deleted, 204)
    t.equal(deleted.text, '')
    assertError(t, await ada.delete(`/categories/${cats}`), 409, 'category_in_use')
    await ada.delete(`/pets/${rex}`)
    assertResponse(t, await ada.delete(`/categories/${cats}`), 204)
    for (const answer of [
      await ada.get(`/categories/${dogs}`),
      await ada.patch(`/categories/${dogs}`, {}),
      await ada.delete(`/categories/${dogs}`)
    ]) {
      assertError(t, answer, 404, 'category_not_found')
    }
    assertResponse(t, await ada.get('/categories'), 200, [])
    t.ok(await newCategory(ada) > cats, 'ids are not used again')
  })

  await t.test('a pet and the end of its category never both succeed', async (t) => {
    const ada = await openAccount()
    for (let round = 0; round < 10; round++) {
      const categoryId = await newCategory(ada)
      const [added, deleted] = await Promise.all([
        ada.post('/pets', { name: 'Rex', categoryId }),
        ada.delete(`/categories/${categoryId}`)
      ])
      if (added.status === 201) {
        assertError(t, deleted, 409, 'category_in_use')
      } else {
        assertError(t, added, 409, 'unknown_category')
        assertResponse(t, deleted, 204)
      }
    }
  })

  await t.test('a category that is not there is not found', async (t) => {
    const ada = await openAccount()
    for (const id of ['999999', '9007199254740993', UNKNOWN]) {
      assertError(t, await ada.get(`/categories/${id}`), 404, 'category_not_found')
      assertError(t, await ada.patch(`/categories/${id}`, { name: 'Dogs' }), 404, 'category_not_found')
      assertError(t, await ada.delete(`/categories/${id}`), 404, 'category_not_found')
    }
  })
})
