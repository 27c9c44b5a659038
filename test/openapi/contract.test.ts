// Only on SQLite: checks the document and its viewer.

import t from 'tap'
import { startApp, type Answer } from '../support/app.ts'
import { contractOf } from '../support/contract.ts'

type Test = Pick<typeof t, 'equal' | 'match'>

t.test('the judge of answers', async (t) => {
  const running = await startApp(t)
  const { nobody, openAccount } = running
  const { problemOf } = contractOf(running.app, running.config)
  const ada = await openAccount()
  const category = await ada.post('/categories', { name: 'Dogs' })
  const pet = await ada.post('/pets', { name: 'Rex', categoryId: category.body.id })
  const path = `/pets/${pet.body.id}`
  const read = await ada.get(path)
  const list = await ada.get('/pets')
  const missing = await ada.get('/pets/999999')
  const unknown = await nobody.get('/nowhere')
  const wrongMethod = await nobody.request('PUT', '/pets')
  const options = await nobody.request('OPTIONS', path)
  const deleted = await ada.delete(path)

  const accepts = (t: Test, method: string, path: string, answer: Answer): void => {
    t.equal(problemOf(method, path, answer), undefined, `${method} ${path} ${answer.status}`)
  }
  const refuses = (t: Test, method: string, path: string, answer: Answer, problem: RegExp | string): void => {
    t.match(problemOf(method, path, answer) ?? 'no problem', problem)
  }

  await t.test('accepts what the service answers', async (t) => {
    accepts(t, 'GET', path, read)
    accepts(t, 'GET', '/pets?limit=3', list)
    accepts(t, 'POST', '/pets', pet)
    accepts(t, 'DELETE', path, deleted)
    accepts(t, 'GET', path, missing)
    accepts(t, 'GET', '/nowhere', unknown)
    accepts(t, 'PUT', '/pets', wrongMethod)
    accepts(t, 'OPTIONS', path, options)
    accepts(t, 'HEAD', path, { ...read, text: '', body: undefined })
    accepts(t, 'GET', path, await ada.get(path))
    accepts(t, 'GET', '/%70ets', list)
  })

  await t.test('refuses a status that the operation does not document', async (t) => {
    refuses(t, 'GET', path, { ...read, status: 202 }, 'getPet does not document 202')
    refuses(t, 'POST', '/pets', { ...pet, status: 200 }, 'createPet does not document 200')
    refuses(
      t,
      'GET',
      '/pets',
      withCode(missing, 'pet_not_found', 404),
      'listPets does not document 404 (pet_not_found)'
    )
  })

  await t.test(
    'refuses an answer without a header field that it promises, and one with a field of another',
    async (t) => {
      for (const name of ['etag', 'deprecation', 'sunset', 'link']) {
        refuses(t, 'GET', path, without(read, name), 'promises the header')
      }
      refuses(t, 'GET', '/pets', without(list, 'link'), 'promises the header Link')
      refuses(t, 'POST', '/pets', without(pet, 'location'), 'promises the header Location')
      refuses(t, 'GET', path, without(missing, 'sunset'), 'promises the header Sunset')
      refuses(
        t,
        'GET',
        '/pets',
        without(await nobody.get('/pets'), 'www-authenticate'),
        'promises the header WWW-Authenticate'
      )
      refuses(t, 'GET', path, without(read, 'request-id'), 'no Request-Id')
      refuses(t, 'GET', '/pets', withHeader(list, 'location', '/pets/1'), 'does not document the header location')
      refuses(t, 'DELETE', path, withHeader(deleted, 'etag', '"1"'), 'does not document the header etag')
    }
  )

  await t.test('refuses a body that the schema does not describe', async (t) => {
    const { id, name, categoryId, status } = read.body
    refuses(
      t,
      'GET',
      path,
      withBody(read, { id, name, categoryId, status, note: null }),
      'additional properties (note)'
    )
    refuses(t, 'GET', path, withBody(read, { id, name, categoryId, status: null }), '/status')
    refuses(t, 'GET', path, withBody(read, { id, name, status }), "must have required property 'categoryId'")
    refuses(t, 'GET', path, withBody(read, { id: String(id), name, categoryId, status }), '/id must be integer')
    refuses(t, 'GET', path, withBody(read, { id, name, categoryId, status: 'lost' }), '/status')
    refuses(t, 'GET', '/pets', withBody(list, [{ id, name }]), '/0')
    refuses(
      t,
      'GET',
      '/categories/1',
      withBody(await ada.get(`/categories/${categoryId}`), { id: 1, name, description: null }),
      '/description must be string'
    )
    refuses(t, 'GET', path, { ...read, body: undefined, text: '{' }, 'is no JSON')
    const account = await ada.get('/account')
    refuses(
      t,
      'GET',
      '/account',
      withBody(account, { ...account.body, createdAt: '2026-11-21T10:00:00Z' }),
      '/createdAt'
    )
  })

  await t.test('refuses another content type, a body where there is none, and what caches would keep', async (t) => {
    refuses(t, 'GET', path, withHeader(read, 'content-type', 'text/plain'), 'content type text/plain')
    refuses(t, 'GET', path, withHeader(read, 'content-type', 'application/json'), 'content type')
    refuses(t, 'DELETE', path, { ...deleted, text: '{}' }, 'has no body')
    refuses(t, 'GET', path, { ...read, status: 304 }, 'has no body')
    refuses(t, 'HEAD', path, read, 'has no body')
    refuses(t, 'GET', path, withHeader(read, 'cache-control', 'public'), 'Cache-Control')
    refuses(t, 'GET', path, withHeader(missing, 'cache-control', 'private, no-cache'), 'not to be stored')
    const key = await ada.post('/account/keys', {})
    refuses(t, 'POST', '/account/keys', withHeader(key, 'cache-control', 'private, no-cache'), 'not no-store')
  })

  await t.test(
    'refuses an error of another shape, with another status, or with a code that is not documented',
    async (t) => {
      refuses(
        t,
        'GET',
        path,
        withBody(missing, { ...missing.body, error: 'Not Found' }),
        'additional properties (error)'
      )
      refuses(t, 'GET', path, withBody(missing, { code: 'pet_not_found', message: 'x' }), "'status'")
      refuses(t, 'GET', path, withBody(missing, { ...missing.body, status: 400 }), 'the error says 400')
      refuses(t, 'GET', path, withCode(missing, 'lost', 404), '/code must be equal to one')
      refuses(t, 'GET', path, withCode(missing, 'order_not_found', 404), 'does not document the code order_not_found')
      refuses(t, 'GET', '/nowhere', withCode(unknown, 'nowhere', 404), '/code must be equal to one')
      refuses(t, 'GET', '/nowhere', withBody(unknown, { ...unknown.body, stack: '' }), 'additional properties (stack)')
    }
  )

  await t.test('refuses answers where nothing is documented', async (t) => {
    refuses(t, 'GET', '/nowhere', read, 'nothing is documented')
    refuses(t, 'GET', '/pets/', list, 'nothing is documented')
    refuses(t, 'PUT', '/pets', list, 'PUT is not documented')
    refuses(t, 'PUT', '/pets', without(wrongMethod, 'allow'), 'no Allow')
    refuses(t, 'PUT', '/pets', withHeader(wrongMethod, 'allow', 'GET, OPTIONS'), 'Allow is')
    refuses(t, 'OPTIONS', path, withHeader(options, 'allow', 'GET'), 'Allow is')
  })
})

t.test('with a base path the judge finds the same operations below it', async (t) => {
  const running = await startApp(t, { BASE_PATH: '/v1' })
  const { problemOf } = contractOf(running.app, running.config)
  const answer = await running.nobody.get('/v1/pets')
  t.equal(answer.status, 401)
  t.equal(problemOf('GET', '/v1/pets', answer), undefined)
  t.match(problemOf('GET', '/v1/pets', without(answer, 'www-authenticate')), 'promises the header')
  t.match(problemOf('GET', '/pets', { ...answer, status: 200 }), 'nothing is documented')
  t.equal((await running.nobody.get('/livez')).status, 200)
  t.equal((await running.nobody.get('/v1')).status, 200)
})

function withBody (answer: Answer, body: unknown): Answer {
  return { ...answer, body, text: JSON.stringify(body) }
}

function withCode (answer: Answer, code: string, status: number): Answer {
  return { ...withBody(answer, { code, message: 'x', status }), status }
}

function withHeader (answer: Answer, name: string, value: string): Answer {
  return { ...answer, headers: { ...answer.headers, [name]: value } }
}

function without ({ headers: { ...headers }, ...answer }: Answer, name: string): Answer {
  delete headers[name]
  return { ...answer, headers }
}
