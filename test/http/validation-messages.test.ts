// Only on SQLite: checks the validation of requests.

import t from 'tap'
import { startApp } from '../support/app.ts'
import { assertError, assertRejectsInput } from '../support/checks.ts'
import { operationsOf } from '../support/operations.ts'

// Messages name the rule that was broken, in words that a person can act on.

t.test('messages about paths and queries name the rule', async (t) => {
  const { openAccount } = await startApp(t)
  const client = await openAccount()
  await assertRejectsInput(t, async (path: string) => await client.get(path), [
    ['/pets/01', /^Path parameter petId must be written without leading zeros\.$/],
    ['/pets/9223372036854775808', /^Path parameter petId must be at most 9223372036854775807\.$/],
    ['/pets/-1', /^Path parameter petId must be a whole number in digits, such as 7\.$/],
    ['/pets/x', /must be a whole number in digits/],
    ['/pets/0', /^Path parameter petId must be 1 or more\.$/],
    ['/messages/1', /^Path parameter messageId must be msg_ and 26 characters 0-9 and a-z\.$/],
    ['/pets?limit=05', /^Query parameter limit must be written without leading zeros\.$/],
    ['/pets?limit=9223372036854775808', /^Query parameter limit must be 100 or less\.$/],
    ['/pets?limit=99999999999999999999999', /^Query parameter limit must be 100 or less\.$/],
    ['/pets?limit=1&limit=2', /^Query parameter limit is given twice; give it once\.$/],
    ['/pets?sort=id&sort=id', /^Query parameter sort is given twice/],
    ['/pets?status=sold&status=sold', /^Query parameter status is given twice/],
    ['/store/orders?complete=true&complete=true', /^Query parameter complete is given twice/],
    ['/events?after=1&after=1', /^Query parameter after is given twice/],
    ['/store/orders?complete=yes', /^Query parameter complete must be true or false\.$/],
    ['/pets?cursor=A', /^Query parameter cursor must be the cursor of a Link header/],
    ['/pets?id=1,2', /^Query parameter id must have one value; to ask for several, repeat it: id=1&id=2\.$/],
    ['/pets?id[]=1&id[]=2', /^Query parameter "id\[\]" is not allowed; to ask for several, repeat it: id=1&id=2\.$/],
    ['/inventory?petId[0]=1', /repeat it: petId=1&petId=2\.$/],
    ['/pets?id=1&id=x', /^Query parameter id must be a whole number in digits/],
    ['/pets?id=1&id=01', /^Query parameter id must be written without leading zeros\.$/],
    [`/pets?${'id=1&'.repeat(101)}`, /^Query parameter id must be given at most 100 times\.$/],
    ['/pets?limit[]=1', /^Query parameter "limit\[\]" is not allowed\.$/]
  ])
  const items = await client.post('/webhooks', { url: 'https://example.com/', events: ['pet.created', 'x'] })
  assertError(t, items, 400, 'validation_failed', /^Each item of events must be one of pet/)
  const only = await client.post('/webhooks/1/resend', { only: 'all' })
  assertError(t, only, 400, 'validation_failed', /^only must be failed\.$/)
})

/** Filters that take any text. */
const FREE_TEXT = ['/lab/requests operation', '/lab/requests run']

t.test('no message of any operation has a regular expression or an index', async (t) => {
  const { app, openAccount } = await startApp(t)
  const client = await openAccount()
  for (const { method, path, parameters, body } of operationsOf(app)) {
    for (const { name, in: place } of parameters.filter(({ in: place }) => place === 'path' || place === 'query')) {
      if (FREE_TEXT.includes(`${path} ${name}`)) continue
      const ids = path.replace(/\{(\w+)\}/g, (_, other: string) => place === 'path' && other === name ? '-' : '1')
      const at = place === 'query' ? `${ids}?${name}=A,` : ids
      const { status, body: { message } } = await client.request(method, at, { body })
      t.equal(status, 400, at)
      t.notMatch(message, /\^|\$|\\|\[0|\.\d|pattern/, at)
    }
    for (const [name, { type }] of Object.entries(body?.properties ?? {})) {
      const value = type === 'array' ? ['\0'] : '\0'
      const answer = await client.request(method, path.replace(/\{\w+\}/g, '1'), { body: { [name]: value } })
      t.notMatch(answer.body?.message, /\^|\$|\\|\[0|\.\d|pattern/, `${method} ${path} ${name}`)
    }
  }
})

t.test('a 404 names an address that exists, with a base path as well', async (t) => {
  for (const base of ['', '/v1']) {
    const { nobody } = await startApp(t, { BASE_PATH: base })
    for (const path of ['/nothing', `${base}/nothing`, `${base}/pets/`]) {
      const answer = await nobody.get(path)
      assertError(t, answer, 404, 'route_not_found', `GET ${base}/openapi.json lists`)
      const [, named = ''] = /GET (\S+)/.exec(answer.body.message) ?? []
      t.equal((await nobody.get(named)).status, 200)
    }
  }
})
