import t from 'tap'
import { startApp, type Answer } from '../support/app.ts'
import { assertResponse, replayableParts, assertError, assertReplayed } from '../support/checks.ts'
import { loadFixtures, mergeTables } from '../support/fixture.ts'
import { READING_POSTS } from '../support/operations.ts'
import { key } from './fields.ts'

const fixtures = await loadFixtures()

/** Writes by operationId. Every write of the document that takes an Idempotency-Key is in a fixture. */
const WRITES = mergeTables(fixtures.map(({ keyedWrites }) => keyedWrites))

/** The answer holds a secret, which is never stored. */
const SECRET = mergeTables(fixtures.map(({ secretWrites }) => secretWrites))

/** Operations that cannot be repeated, because they end the API key. */
const ONCE = ['deleteAccount']

t.test('Idempotency-Key', async (t) => {
  const { app, nobody, openAccount, withKey } = await startApp(t)

  await t.test('the document says for every write whether it accepts a key', async (t) => {
    const paths = app.swagger().paths as Record<string, Record<string, { operationId: string }>>
    const writes = Object.values(paths).flatMap((methods) => Object.entries(methods))
      .filter(([method]) => ['post', 'patch', 'delete'].includes(method))
      .map(([, { operationId }]) => operationId)
      .filter((operationId) => !READING_POSTS.includes(operationId))
    t.same(writes.sort(), [...Object.keys(WRITES), ...Object.keys(SECRET), ...ONCE].sort())
  })

  await t.test('an Idempotency-Key does not replace the API key', async (t) => {
    const ada = await openAccount()
    const first = await ada.post('/messages', { message: 'Hello' }, key('a'))
    t.equal(first.status, 201)
    assertError(t, await nobody.post('/messages', { message: 'Hello' }, key('a')), 401, 'unauthorized')
    const { body: { apiKey } } = await ada.post('/account/keys', { readOnly: true })
    assertError(t, await withKey(apiKey).post('/messages', { message: 'Hello' }, key('a')), 403, 'read_only_key')
  })

  await t.test('the service refuses a key that is not 1 to 255 visible characters', async (t) => {
    const ada = await openAccount()
    for (const text of ['', ' ', '""', 'a b', 'é', 'a\tb', 'x'.repeat(256), `"${'x'.repeat(256)}"`, '"a b"']) {
      assertError(
        t,
        await ada.post('/messages', { message: 'Hello' }, key(text)),
        400,
        'validation_failed',
        'Idempotency-Key must be 1 to 255',
        JSON.stringify(text)
      )
    }
    const twice = await ada.request('POST', '/messages', {
      headers: { 'idempotency-key': ['a', 'b'] },
      body: { message: 'Hello' }
    })
    assertError(t, twice, 400, 'validation_failed', 'Idempotency-Key')
    assertResponse(t, await ada.get('/messages'), 200, [])
    for (const text of [
      '!',
      '~',
      'x'.repeat(255),
      `"${'y'.repeat(255)}"`,
      '7e1f0c1c-6d6c-4b0e-9a59-6f7c1b1f9b6a',
      "'"
    ]) {
      t.equal((await ada.post('/messages', { message: 'Hello' }, key(text))).status, 201, text)
    }
  })

  await t.test('a read ignores it', async (t) => {
    const ada = await openAccount()
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      const answer = await ada.request(method, '/pets', { headers: key('a b') })
      t.ok(answer.status < 300, method)
      t.equal(answer.headers['idempotency-replayed'], undefined)
    }
  })

  await t.test('an operation whose answer contains a secret refuses it', async (t) => {
    const ada = await openAccount()
    for (const [name, prepare] of Object.entries(SECRET)) {
      const [method, path, body] = await prepare(ada)
      assertError(
        t,
        await ada.request(method, path, { headers: key('a'), body }),
        400,
        'validation_failed',
        'Idempotency-Key is not allowed',
        name
      )
    }
    t.equal((await ada.get('/account/keys')).body.length, 1)
  })

  for (const [name, { prepare, shows }] of Object.entries(WRITES)) {
    await t.test(`${name} sent twice has one effect and two equal answers`, async (t) => {
      const ada = await openAccount()
      const [method, path, body] = await prepare(ada)
      const send = async (): Promise<Answer> => await ada.request(method, path, { headers: key('once'), body })
      const first = await send()
      t.ok([200, 201, 202, 204].includes(first.status), first.text)
      const after = await ada.get(shows)
      assertReplayed(t, await send(), first, 'again')
      assertReplayed(t, await send(), first, 'and again')
      t.same((await ada.get(shows)).body, after.body, 'nothing happened')
    })

    await t.test(`${name} sent ten times at once has one effect`, async (t) => {
      const ada = await openAccount()
      const [method, path, body] = await prepare(ada)
      const answers = await Promise.all(
        Array.from({ length: 10 }, async () => await ada.request(method, path, { headers: key('once'), body }))
      )
      t.same(
        new Set(answers.map((answer) => JSON.stringify(replayableParts(answer)))).size,
        1,
        answers.map(({ status }) => status).join()
      )
      t.ok([200, 201, 202, 204].includes(answers[0]!.status), answers[0]!.text)
      t.equal(
        answers.filter(({ headers }) => headers['idempotency-replayed'] === undefined).length,
        1,
        'one of them was the first'
      )
    })
  }

  await t.test('the deletion of an account accepts it, and still ends the API key', async (t) => {
    const ada = await openAccount()
    assertResponse(t, await ada.delete('/account', key('end')), 204)
    assertError(t, await ada.delete('/account', key('end')), 401, 'unauthorized')
  })

  await t.test('a quoted and an unquoted key are the same', async (t) => {
    const ada = await openAccount()
    const first = await ada.post('/messages', { message: 'Hello' }, key('abc'))
    assertReplayed(t, await ada.post('/messages', { message: 'Hello' }, key('"abc"')), first, 'quoted')
    const quoted = await ada.post('/messages', { message: 'Hello' }, key('"a\\"b\\\\c"'))
    assertReplayed(t, await ada.post('/messages', { message: 'Hello' }, key('a"b\\c')), quoted, 'with escapes')
    const answers = await Promise.all(
      ['new', '"new"', 'new', '"new"'].map(
        async (text) => await ada.post('/messages', { message: 'Hello' }, key(text))
      )
    )
    t.same(new Set(answers.map(({ body }) => body.id)).size, 1)
    const cased = await ada.post('/messages', { message: 'Hello' }, key('ABC'))
    t.same(
      [cased.status, cased.headers['idempotency-replayed']],
      [201, undefined],
      'letters in another case are another key'
    )
    t.equal((await ada.get('/messages')).body.length, 4)
  })
})
