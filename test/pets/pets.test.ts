import t from 'tap'
import { startApp, type Answer } from '../support/app.ts'
import { assertResponse, linkOf, assertListed, assertError, assertRejectsInput, walk } from '../support/checks.ts'
import { newCategory, newPet, petOf } from '../support/fixtures.ts'

const UNKNOWN = '9223372036854775807'

t.test('pets', async (t) => {
  const running = await startApp(t)
  const { openAccount } = running

  await t.test('bad input is refused with the field and the rule', async (t) => {
    const ada = await openAccount()
    const petId = await newPet(ada)
    const { categoryId } = await petOf(ada, petId)
    await assertRejectsInput(t, async (body) => await ada.post('/pets', body), [
      [{}, /(name|categoryId) is required/],
      [{ categoryId }, 'name is required'],
      [{ name: 'Rex' }, 'categoryId is required'],
      [{ name: null, categoryId }, 'name must be a string'],
      [{ name: 5, categoryId }, 'name must be a string'],
      [{ name: '', categoryId }, 'name must have at least 1 character'],
      [{ name: 'x'.repeat(256), categoryId }, 'name must have at most 255 characters'],
      [{ name: 'Rex', categoryId: '1' }, 'categoryId must be an integer'],
      [{ name: 'Rex', categoryId: 1.5 }, 'categoryId must be an integer'],
      [{ name: 'Rex', categoryId: 0 }, 'categoryId must be 1 or more'],
      [{ name: 'Rex', categoryId, status: 'lost' }, 'status must be one of available, pending, sold'],
      [{ name: 'Rex', categoryId, status: null }, 'status must be'],
      [{ name: 'Rex', categoryId, id: 7 }, '"id" is not allowed'],
      [{ name: 'Rex', categoryId, tag: 'x' }, '"tag" is not allowed']
    ])
    await assertRejectsInput(t, async (body) => await ada.patch(`/pets/${petId}`, body), [
      [{ name: null }, 'name must be a string'],
      [{ categoryId: null }, 'categoryId must be an integer'],
      [{ status: null }, 'status must be'],
      [{ name: '' }, 'name must have at least 1 character'],
      [{ id: petId }, '"id" is not allowed']
    ])
    await assertRejectsInput(t, async (query) => await ada.get(`/pets?${query}`), [
      ['limit=', 'limit'],
      ['limit=Infinity', 'limit'],
      ['limit=1&limit=2', 'limit'],
      ['cursor=K', 'cursor'],
      ['cursor=012345678901', 'cursor'],
      ['sort=name', 'sort'],
      ['sort=+id', 'sort'],
      ['status=lost', 'status'],
      ['status=sold&status=pending', 'status'],
      ['categoryId=0', 'categoryId'],
      ['categoryId=1&categoryId=2', 'categoryId'],
      ['id=', 'id'],
      ['id=0', 'id'],
      ['id=1&id=x', 'id'],
      [Array.from({ length: 101 }, (_, i) => `id=${i + 1}`).join('&'), 'id must be given at most 100 times'],
      ['name=Rex', '"name" is not allowed']
    ])
    assertListed(t, await ada.get('/pets'), [petId], 'nothing was added')
  })

  await t.test('a pet is added available, with its address and its entity tag', async (t) => {
    const ada = await openAccount()
    const categoryId = await newCategory(ada)
    const added = await ada.post('/pets', { name: 'Rex', categoryId })
    const { id } = added.body
    assertResponse(t, added, 201, { id, name: 'Rex', categoryId, status: 'available' })
    t.ok(Number.isSafeInteger(id) && id > 0)
    t.match(added.headers, { location: `/pets/${id}`, etag: /^"[^"]+"$/, 'cache-control': 'private, no-cache' })

    for (const status of ['available', 'pending', 'sold']) {
      const { body } = await ada.post('/pets', { name: 'Rex', categoryId, status })
      t.same(body, { id: body.id, name: 'Rex', categoryId, status })
      t.same(await petOf(ada, body.id), body)
    }
  })

  await t.test('a name comes back as it was sent', async (t) => {
    const ada = await openAccount()
    const categoryId = await newCategory(ada)
    for (const name of [' ', 'Ré🐶\n"\\\u0001\u2028', '🐶'.repeat(255), 'null', '%_', "'; --"]) {
      const { body } = await ada.post('/pets', { name, categoryId })
      t.equal(body.name, name)
      t.equal((await petOf(ada, body.id)).name, name)
      t.equal((await ada.get(`/pets/${body.id}`)).body.name, name)
    }
  })

  await t.test('filters narrow the list together', async (t) => {
    const ada = await openAccount()
    const [dogs, cats] = [await newCategory(ada, 'Dogs'), await newCategory(ada, 'Cats')]
    const rex = await newPet(ada, { categoryId: dogs })
    const bella = await newPet(ada, { categoryId: dogs, status: 'pending' })
    const minka = await newPet(ada, { categoryId: cats, status: 'pending' })
    const felix = await newPet(ada, { categoryId: cats, status: 'sold' })
    const table: Array<[query: string, ids: number[]]> = [
      ['', [rex, bella, minka, felix]],
      ['sort=id', [rex, bella, minka, felix]],
      ['sort=-id', [felix, minka, bella, rex]],
      ['status=pending', [bella, minka]],
      ['status=available', [rex]],
      [`categoryId=${cats}`, [minka, felix]],
      [`categoryId=${cats}&status=pending&sort=-id`, [minka]],
      [`categoryId=${UNKNOWN}`, []],
      [`id=${felix}&id=${rex}`, [rex, felix]],
      [`id=${felix}&id=${rex}&sort=-id`, [felix, rex]],
      [`id=${rex}&id=${rex}`, [rex]],
      [`id=${rex}&id=${bella}&status=pending`, [bella]],
      [`id=${rex}`, [rex]],
      [`id=${rex}&status=sold`, []],
      [`id=${UNKNOWN}&id=9007199254740993`, []],
      [`id=${UNKNOWN}`, []]
    ]
    for (const [query, ids] of table) assertListed(t, await ada.get(`/pets?${query}`), ids, query)
    const list = await ada.get(`/pets?id=${rex}&id=${bella}`)
    t.same(list.body, [
      { id: rex, name: 'Rex', categoryId: dogs, status: 'available' },
      { id: bella, name: 'Rex', categoryId: dogs, status: 'pending' }
    ])
  })

  await t.test('a list comes in pages of 20, or of the limit', async (t) => {
    const ada = await openAccount()
    const categoryId = await newCategory(ada)
    const ids: number[] = []
    for (let i = 0; i < 25; i++) ids.push(await newPet(ada, { categoryId }))

    const page = await ada.get('/pets')
    assertListed(t, page, ids.slice(0, 20))
    t.equal(linkOf(page, 'first'), '/pets')
    assertListed(t, await ada.get(linkOf(page, 'next')!), ids.slice(20))
    const whole = await ada.get('/pets?limit=25')
    assertListed(t, whole, ids)
    t.equal(whole.headers.link, '</pets?limit=25>; rel="first"', 'there is no next page')
    assertListed(t, await ada.get('/pets?limit=100'), ids)
    for (const query of [
      'limit=1',
      'limit=7',
      'limit=24',
      'limit=7&sort=-id',
      `limit=7&status=available&categoryId=${categoryId}`
    ]) {
      const expected = query.includes('-id') ? [...ids].reverse() : ids
      t.same(
        (await walk(ada, `/pets?${query}`)).map((pet: any) => pet.id),
        expected,
        query
      )
    }
    // Any position is a cursor, also one that no page gave out.
    for (const cursor of ['0', 'zzzzzzzzzzz', '00000000001']) { t.equal((await ada.get(`/pets?cursor=${cursor}`)).status, 200, cursor) }
    assertListed(t, await ada.get('/pets?cursor=zzzzzzzzzzz'), [])

    const asked = ids.map((id) => `id=${id}`).join('&')
    const byId = await ada.get(`/pets?${asked}`)
    assertListed(t, byId, ids, 'pets asked for by id fit one page')
    t.equal(linkOf(byId, 'next'), undefined)
    const limited = await ada.get(`/pets?${asked}&limit=20`)
    assertListed(t, limited, ids.slice(0, 20))
    assertListed(t, await ada.get(linkOf(limited, 'next')!), ids.slice(20))
  })

  await t.test('the list of one pet carries that pet\'s entity tag, and no other list does', async (t) => {
    const ada = await openAccount()
    const categoryId = await newCategory(ada)
    const added = await ada.post('/pets', { name: 'Rex', categoryId })
    const path = `/pets?id=${added.body.id}`
    const list = await ada.get(path)
    assertResponse(t, list, 200, [added.body])
    t.equal(list.headers.etag, added.headers.etag)
    t.equal((await ada.get(`/pets/${added.body.id}`)).headers.etag, list.headers.etag)
    const known = await ada.get(path, { 'if-none-match': list.headers.etag! })
    assertResponse(t, known, 304)
    t.equal(known.headers.link, list.headers.link)
    for (const query of ['&sort=id', '&limit=1', '&status=available', `&id=${added.body.id}`]) {
      t.not((await ada.get(path + query)).headers.etag, list.headers.etag, query)
    }
    const changed = await ada.patch(`/pets/${added.body.id}`, { name: 'Waldi' }, { 'if-match': list.headers.etag! })
    t.equal(changed.status, 200, 'the tag is good for a conditional change')
    t.equal((await ada.get(path, { 'if-none-match': list.headers.etag! })).headers.etag, changed.headers.etag)
    t.match(
      (await ada.get(`/pets?id=${UNKNOWN}`)).headers.etag,
      /^"[^"]{20,}"$/,
      'a list of nothing has a tag of its own'
    )
  })
})

t.test('the deprecated read of one pet', async (t) => {
  const successor = (answer: Answer): object => {
    const { deprecation, sunset, link } = answer.headers
    return { deprecation, sunset, link }
  }
  const announced = (petId: number | string, sunset = 'Thu, 05 Dec 2030 00:00:00 GMT'): object =>
    ({ deprecation: '@1764892800', sunset, link: `</pets?id=${petId}>; rel="successor-version"` })

  await t.test('says so on 200, 304 and 404, and for GET and HEAD alone', async (t) => {
    const { openAccount } = await startApp(t)
    const ada = await openAccount()
    const petId = await newPet(ada)
    const read = await ada.get(`/pets/${petId}`)
    assertResponse(t, read, 200, await petOf(ada, petId))
    t.same(successor(read), announced(petId))
    t.equal(read.headers['cache-control'], 'private, no-cache')
    const known = await ada.get(`/pets/${petId}`, { 'if-none-match': read.headers.etag! })
    assertResponse(t, known, 304)
    t.same(successor(known), announced(petId))
    t.equal(known.headers.etag, read.headers.etag)
    const head = await ada.request('HEAD', `/pets/${petId}`)
    t.same([head.status, successor(head)], [200, announced(petId)])
    const missing = await ada.get('/pets/999999')
    assertError(t, missing, 404, 'pet_not_found')
    t.same(successor(missing), announced(999_999))
    const digits = '9223372036854775807'
    t.equal(
      (await ada.get(`/pets/${digits}`)).headers.link,
      `</pets?id=${digits}>; rel="successor-version"`,
      'as it was asked for'
    )

    const none = { deprecation: undefined, sunset: undefined, link: undefined }
    t.same(successor(await ada.patch(`/pets/${petId}`, {})), none)
    t.equal((await ada.get(`/pets?id=${petId}`)).headers.deprecation, undefined)
    t.same(successor(await ada.delete(`/pets/${petId}`)), none)
  })

  await t.test('a created pet has an address that answers, after the sunset as well', async (t) => {
    const { openAccount } = await startApp(t, { PET_READ_SUNSET: '2025-12-05', PUBLIC_URL: 'https://pets.example' })
    const ada = await openAccount()
    const pet = { name: 'Rex', categoryId: await newCategory(ada) }
    const created = await ada.post('/pets', pet, { 'idempotency-key': 'k' })
    t.equal(created.headers.location, `https://pets.example/pets?id=${created.body.id}`)
    const replay = await ada.post('/pets', pet, { 'idempotency-key': 'k' })
    t.equal(replay.headers.location, created.headers.location)
    assertResponse(t, await ada.get(`/pets?id=${created.body.id}`), 200, [created.body])
  })

  await t.test('answers 410 from its sunset on, whatever is asked for', async (t) => {
    const { openAccount, nobody } = await startApp(t, { PET_READ_SUNSET: '2025-12-05' })
    const ada = await openAccount()
    const petId = await newPet(ada)
    const sunset = 'Fri, 05 Dec 2025 00:00:00 GMT'
    for (const headers of [{}, { 'if-none-match': '*' }]) {
      for (const id of [petId, 999_999]) {
        const gone = await ada.get(`/pets/${id}`, headers)
        assertError(t, gone, 410, 'operation_sunset', '/pets?id={petId}')
        t.same(successor(gone), announced(id, sunset))
        t.equal(gone.headers.etag, undefined)
      }
    }
    assertError(t, await ada.get('/pets/0'), 400, 'validation_failed')
    assertError(t, await nobody.get(`/pets/${petId}`), 401, 'unauthorized')
    assertListed(t, await ada.get(`/pets?id=${petId}`), [petId], 'the successor answers')
    t.equal((await ada.patch(`/pets/${petId}`, { name: 'Waldi' })).status, 200)
    assertResponse(t, await ada.delete(`/pets/${petId}`), 204)
  })

  await t.test('announces the date that is set', async (t) => {
    const { openAccount } = await startApp(t, { PET_READ_SUNSET: '2096-02-29' })
    const ada = await openAccount()
    t.same(successor(await ada.get('/pets/1')), announced(1, 'Wed, 29 Feb 2096 00:00:00 GMT'))
  })
})
