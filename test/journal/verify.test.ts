import t from 'tap'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { assertError } from '../support/checks.ts'
import { newFault } from '../lab/fixture.ts'
import { turnOn } from './fixture.ts'

async function verify (client: Client, check: object): Promise<Answer> {
  return await client.post('/lab/requests/verify', check)
}

t.test('a check of recorded requests', async (t) => {
  const { openAccount, withKey } = await startApp(t)

  /** A journal with a refused attempt, its repetition after 1 s, and another request. */
  async function withAttempts (): Promise<{ ada: Client, ids: number[] }> {
    const ada = await openAccount()
    await turnOn(ada)
    await newFault(ada, { operation: 'createMessage', effect: { type: 'refuse', status: 503, retryAfter: 1 } })
    const post = async (message: string, key: string): Promise<unknown> =>
      await ada.post('/messages', { message }, { 'idempotency-key': key, 'petstore-run': 'a' })
    await post('a', 'one')
    await post('a', 'one')
    await post('b', 'two')
    const { body } = await ada.get('/lab/requests')
    return { ada, ids: body.map(({ id }: { id: number }) => id) }
  }

  const { ada, ids } = await withAttempts()
  const all = { operation: 'createMessage' }

  await t.test('counts the requests that match', async (t) => {
    const passing = [
      { exactly: 3 }, { atLeast: 3 }, { atMost: 3 }, { atLeast: 1, atMost: 3 }
    ]
    for (const times of passing) {
      const { status, body } = await verify(ada, { match: all, times })
      t.same([status, body], [200, { passed: true, actual: 3, requests: ids, differences: [] }])
    }
    for (const [times, text] of [
      [{ exactly: 2 }, '3 requests match; exactly 2 must match.'],
      [{ atLeast: 4 }, '3 requests match; at least 4 must match.'],
      [{ atMost: 2 }, '3 requests match; at most 2 may match.']
    ] as const) {
      const { status, body } = await verify(ada, { match: all, times })
      t.same([status, body], [200, { passed: false, actual: 3, requests: ids, differences: [{ text }] }])
    }
  })

  await t.test('matches by each member', async (t) => {
    const { body: [{ id: keyId }] } = await ada.get('/account/keys')
    const [first] = ids
    await ada.get('/pets?limit=3')
    for (const [match, actual] of [
      [{}, 5], [{ operation: 'listPets' }, 1], [{ method: 'POST' }, 3], [{ path: '/messages' }, 3],
      [{ path: '/pets' }, 1], [{ path: '/pets?limit=3' }, 1], [{ path: '/pets?limit=4' }, 0], [{ status: 503 }, 1],
      [{ keyId }, 5], [{ keyId: 4_711 }, 0], [{ keyId: 1e300 }, 0], [{ run: 'a' }, 3], [{ outcome: 'refused' }, 1],
      [{ run: 'a', status: 201 }, 2]
    ] as const) {
      const { body } = await verify(ada, { match, times: { exactly: actual } })
      t.match(body, { passed: true, actual }, JSON.stringify(match))
    }
    t.same((await verify(ada, { match: { status: 503 }, times: { exactly: 1 } })).body.requests, [first])
  })

  await t.test('compares the Idempotency-Keys', async (t) => {
    const times = { atLeast: 1 }
    const sentences = async (check: object): Promise<string[]> =>
      (await verify(ada, { times, ...check })).body.differences.map(({ text }: any) => text)
    t.same(await sentences({ match: all, sameIdempotencyKey: true }), [
      'The third request has another Idempotency-Key than the first.'
    ])
    t.same(await sentences({ match: all, sameIdempotencyKey: false }), [
      `The second request has the Idempotency-Key of request ${ids[0]}.`
    ])
    t.same(await sentences({ match: { ...all, status: 201 }, sameIdempotencyKey: false }), [])
    t.same(await sentences({ match: { operation: 'listPets' }, sameIdempotencyKey: true }), [
      'The first request has no Idempotency-Key.'
    ])
  })

  await t.test('judges the pauses before further attempts', async (t) => {
    const check = async (pauses: object): Promise<any> =>
      (await verify(ada, { match: all, times: { exactly: 3 }, ...pauses })).body
    const { differences: [early] } = await check({ minPauseMs: 86_400_000 })
    t.equal(early.id, ids[1])
    t.match(early.text, /^The second attempt came after \d+ ms, less than 86400000 ms; Retry-After asked for 1000 ms.$/)
    t.match(await check({ minPauseMs: 0, maxPauseMs: 86_400_000 }), { passed: true })
    const bob = await openAccount()
    await turnOn(bob)
    const post = async (): Promise<Answer> => await bob.post('/messages', { message: 'x' }, { 'idempotency-key': 'k' })
    await post()
    await new Promise((resolve) => setTimeout(resolve, 20))
    await post()
    const late = await verify(bob, { match: {}, times: { exactly: 2 }, maxPauseMs: 1 })
    t.match(late.body.differences, [{ text: /^The second attempt came after \d+ ms, more than 1 ms\.$/ }])
    t.match((await verify(bob, { match: {}, times: { exactly: 2 }, minPauseMs: 19 })).body, { passed: true })
  })

  await t.test('judges the order of arrival', async (t) => {
    const check = async (inOrder: object[]): Promise<any> =>
      (await verify(ada, { match: {}, times: { atLeast: 0 }, inOrder })).body
    const order = [{ status: 503 }, { status: 201 }, { status: 201 }, { operation: 'listPets' }]
    t.match(await check(order), { passed: true })
    const { differences } = await check([{ operation: 'listPets' }, { status: 503 }])
    t.same(differences, [{ text: 'No request matches {"status":503} after the first of inOrder.' }])
  })

  await t.test('refuses only what makes no sense, and writes nothing', async (t) => {
    for (const check of [
      {}, { match: {} }, { match: {}, times: {} }, { match: {}, times: { exactly: 1, atMost: 2 } },
      { match: {}, times: { atLeast: 3, atMost: 2 } }, { match: {}, times: { exactly: -1 } },
      { match: { colour: 'red' }, times: { exactly: 1 } }, { match: { outcome: 'good' }, times: { exactly: 1 } },
      { match: {}, times: { exactly: 1 }, minPauseMs: 5, maxPauseMs: 4 },
      { match: {}, times: { exactly: 1 }, inOrder: [] }
    ]) {
      assertError(t, await verify(ada, check), 400, 'validation_failed', /./, JSON.stringify(check))
    }
    const { body: { apiKey } } = await ada.post('/account/keys', { readOnly: true })
    const before = (await ada.get('/lab/requests')).text
    const headers = { 'idempotency-key': 'a b' }
    const asked = await withKey(apiKey).post('/lab/requests/verify', { match: {}, times: { atLeast: 1 } }, headers)
    t.match(asked, { status: 200, body: { passed: true }, headers: { 'idempotency-replayed': undefined } })
    t.equal((await ada.get('/lab/requests')).text, before)
    const failed = await ada.post('/lab/requests/verify', { match: {}, times: { atLeast: 1 } }, { 'if-match': '"x"' })
    assertError(t, failed, 412, 'precondition_failed')
  })

  await t.test('reads a journal of more requests than one read returns', async (t) => {
    const bob = await openAccount()
    await turnOn(bob)
    for (let round = 0; round < 11; round++) {
      await Promise.all(Array.from({ length: 100 }, async () => await bob.get('/account')))
    }
    const { body } = await verify(bob, { match: { operation: 'getAccount' }, times: { exactly: 1_100 } })
    t.match(body, { passed: true })
  })
})
