import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startApp, type Answer, type Client } from '../support/app.ts'
import { assertError, assertRejectsInput, assertResponse, readerOf } from '../support/checks.ts'
import { eventually } from '../support/receiver.ts'
import { openStream } from '../support/stream.ts'
import { newFault } from '../lab/fixture.ts'
import { setLimits } from './fixture.ts'

const PATH = '/lab/limits'
const put = async (client: Client, body: unknown, headers = {}): Promise<Answer> =>
  await client.request('PUT', PATH, { body, headers })

/** Sends requests one after another. @returns their answers */
async function send (client: Client, count: number): Promise<Answer[]> {
  const answers: Answer[] = []
  for (let i = 0; i < count; i++) answers.push(await client.get('/categories'))
  return answers
}

const statusesOf = (answers: Answer[]): number[] => answers.map(({ status }) => status)

t.test('limits', async (t) => {
  const { openAccount, withKey, nobody, port } = await startApp(t)

  await t.test('a window ends also where the clock of the account stands still', async (t) => {
    const ada = await openAccount()
    const to = '9999-12-31T23:59:59.999Z'
    t.equal((await ada.post('/lab/clock/advance', { to })).status, 200)
    await eventually(async () => (await ada.get('/lab/clock')).headers['petstore-clock'] === to)
    await setLimits(ada, { requests: 1, windowSeconds: 1 })
    t.same(statusesOf(await send(ada, 2)), [200, 429])
    await eventually(async () => (await send(ada, 1))[0]!.status === 200)
  })

  await t.test('bad input is refused with the field and the rule', async (t) => {
    const ada = await openAccount()
    const valid = { requests: 1, windowSeconds: 1 }
    await assertRejectsInput(t, async (body) => await put(ada, body), [
      [{}, 'requests is required'],
      [{ requests: 1 }, 'windowSeconds is required'],
      [{ ...valid, requests: 0 }, 'requests must be 1 or more'],
      [{ ...valid, requests: 1_000_001 }, 'requests must be 1000000 or less'],
      [{ ...valid, windowSeconds: 0 }, 'windowSeconds must be 1 or more'],
      [{ ...valid, windowSeconds: 86_401 }, 'windowSeconds must be 86400 or less'],
      [{ ...valid, per: 'address' }, 'per must be one of account, key'],
      [{ ...valid, fields: 'all' }, 'fields must be one of ietf, x-ratelimit, none'],
      [{ ...valid, retryAfter: 'soon' }, 'retryAfter must be one of seconds, date, none'],
      [{ ...valid, refused: 0 }, '"refused" is not allowed']
    ])
    assertError(t, await ada.get(PATH), 404, 'limits_not_found')
  })

  await t.test('limits are set, read, replaced and deleted', async (t) => {
    const ada = await openAccount()
    const limits = { requests: 2, windowSeconds: 60, per: 'account', fields: 'ietf', retryAfter: 'seconds' }
    const first = await put(ada, { requests: 2, windowSeconds: 60 })
    assertResponse(t, first, 200, { ...limits, refused: 0, early: 0 })
    const read = await ada.get(PATH)
    assertResponse(t, read, 200, first.body)
    t.equal(read.headers.etag, first.headers.etag)
    await send(ada, 3)
    const counted = await ada.get(PATH)
    assertResponse(t, counted, 200, { ...limits, refused: 1, early: 0 })
    t.not(counted.headers.etag, read.headers.etag)

    assertError(t, await put(ada, limits, { 'if-none-match': '*' }), 412, 'precondition_failed')
    const other = { requests: 1, windowSeconds: 5, per: 'key', fields: 'none', retryAfter: 'none' }
    const second = await put(ada, other, { 'idempotency-key': 'not looked at: it is a PUT' })
    assertResponse(t, second, 200, { ...other, refused: 0, early: 0 })
    t.same(statusesOf(await send(ada, 2)), [200, 429], 'the counts begin again')

    assertResponse(t, await ada.delete(PATH), 204)
    assertError(t, await ada.delete(PATH), 404, 'limits_not_found')
    t.same(statusesOf(await send(ada, 3)), [200, 200, 200])
    t.equal((await put(ada, other, { 'if-none-match': '*' })).status, 200)
  })

  await t.test('a window accepts its requests, and the next begins when the clock is moved', async (t) => {
    const ada = await openAccount()
    await setLimits(ada, { requests: 3, windowSeconds: 3_600 })
    const answers = await send(ada, 4)
    t.same(statusesOf(answers), [200, 200, 200, 429])
    t.same(answers.map(({ headers }) => headers['ratelimit-policy']), Array(4).fill('"default";q=3;w=3600'))
    t.same(answers.map(({ headers }) => /r=(\d+)/.exec(String(headers.ratelimit))![1]), ['2', '1', '0', '0'])
    const [, left] = /t=(\d+)$/.exec(String(answers[3]!.headers.ratelimit))!
    t.equal(answers[3]!.headers['retry-after'], left)
    assertError(t, answers[3]!, 429, 'rate_limited', `Try again in ${left} seconds`)

    await ada.post('/lab/clock/advance', { seconds: 1_800 })
    t.same(statusesOf(await send(ada, 1)), [429])
    await ada.post('/lab/clock/advance', { seconds: 1_800 })
    t.same(statusesOf(await send(ada, 4)), [200, 200, 200, 429])
    t.equal((await ada.get(PATH)).body.refused, 3)
  })

  await t.test('the lab is exempt, and everything else of the account is not', async (t) => {
    const ada = await openAccount()
    await setLimits(ada, { requests: 2, windowSeconds: 3_600 })
    for (const path of [PATH, '/lab/faults', '/lab/clock', '/lab/snapshots']) {
      const { status, headers } = await ada.get(path)
      t.same([status, headers.ratelimit], [200, undefined], path)
    }
    t.same(statusesOf([
      await ada.request('HEAD', '/pets'), await ada.get('/pets/4711'), await ada.get('/account'),
      await ada.post('/categories', { name: 'Dogs' })
    ]), [200, 404, 429, 429])
    t.equal((await openStream({ port }, ada)).status, 429, 'streams as well')
    await ada.delete(PATH)
    t.same((await ada.get('/categories')).body, [], 'a refused write has no effect')
  })

  await t.test('a refused request is 429 before 403, and counts in no fault', async (t) => {
    const ada = await openAccount()
    const reader = await readerOf(ada, withKey)
    const fault = await newFault(ada, { operation: '*', effect: { type: 'refuse', status: 500 } })
    await setLimits(ada, { requests: 1, windowSeconds: 3_600 })
    assertError(t, await reader.post('/categories', { name: 'Dogs' }), 403, 'read_only_key')
    assertError(t, await reader.post('/categories', { name: 'Dogs' }), 429, 'rate_limited')
    assertError(t, await ada.get('/pets'), 429, 'rate_limited')
    t.match((await ada.get(`/lab/faults/${fault}`)).body, { passed: 0, hits: 0 })
    assertError(t, await put(reader, { requests: 1, windowSeconds: 1 }), 403, 'read_only_key')
    t.equal((await reader.get(PATH)).status, 200)
    assertError(t, await nobody.get('/pets', { authorization: 'Bearer x' }), 401, 'unauthorized')
  })

  await t.test('keys are counted together, or each for itself, and other accounts not at all', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const second = withKey((await ada.post('/account/keys', {})).body.apiKey)
    await setLimits(ada, { requests: 2, windowSeconds: 3_600 })
    t.same(statusesOf([...await send(ada, 1), ...await send(second, 2)]), [200, 200, 429])
    await setLimits(ada, { requests: 2, windowSeconds: 3_600, per: 'key' })
    t.same(statusesOf([...await send(ada, 3), ...await send(second, 3)]), [200, 200, 429, 200, 200, 429])
    const others = await send(bob, 5)
    t.same(statusesOf(others), Array(5).fill(200))
    t.equal(others[0]!.headers.ratelimit, undefined)
    assertError(t, await bob.get(PATH), 404, 'limits_not_found')
  })

  await t.test('responses have the fields of the configuration', async (t) => {
    const ada = await openAccount()
    const namesOf = ({ headers }: Answer): string[] =>
      Object.keys(headers).filter((name) => /limit|retry/.test(name)).sort()
    const limits = { requests: 1, windowSeconds: 100 }

    await setLimits(ada, { ...limits, fields: 'none', retryAfter: 'none' })
    t.same((await send(ada, 2)).map(namesOf), [[], []])

    await setLimits(ada, { ...limits, fields: 'x-ratelimit' })
    const [accepted, refused] = await send(ada, 2)
    t.match(accepted!.headers, { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '100' })
    t.same(namesOf(refused!), ['retry-after', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'])

    await ada.post('/lab/clock/advance', { seconds: 1_000_000 })
    await setLimits(ada, { ...limits, retryAfter: 'date' })
    const before = Date.now()
    const [, dated] = await send(ada, 2)
    const field = String(dated!.headers['retry-after'])
    t.equal(new Date(field).toUTCString(), field, 'an HTTP-date')
    const wait = Date.parse(field) - before
    t.ok(wait > 99_000 - 1_000 && wait <= 102_000 + (Date.now() - before), `in real time: in ${wait} ms`)
  })

  await t.test('a request before the time of Retry-After is early, in each of its forms', async (t) => {
    for (const retryAfter of ['seconds', 'date', 'none']) {
      const ada = await openAccount()
      await setLimits(ada, { requests: 1, windowSeconds: 1_000, retryAfter })
      // In the millisecond of the refusal, a client cannot have its answer.
      const sendLater = async (): Promise<number> => {
        await sleep(2)
        return (await send(ada, 1))[0]!.status
      }
      const refused: number[] = []
      const countOf = async (): Promise<void> => {
        const { body } = await ada.get(PATH)
        refused.push(body.refused, body.early)
      }
      t.same([await sendLater(), await sendLater()], [200, 429])
      await countOf()
      t.same([await sendLater(), await sendLater()], [429, 429])
      await countOf()
      await ada.post('/lab/clock/advance', { seconds: 1_002 })
      t.same([await sendLater(), await sendLater()], [200, 429])
      await countOf()
      t.same(refused, retryAfter === 'none' ? [1, 0, 3, 0, 4, 0] : [1, 0, 3, 2, 4, 2], retryAfter)
    }
  })

  await t.test('an account that is deleted leaves nothing', async (t) => {
    const ada = await openAccount()
    await setLimits(ada)
    t.equal((await ada.delete('/account')).status, 204)
    assertError(t, await ada.get('/pets'), 401, 'unauthorized')
  })
})

t.test('without the lab there are no limits', async (t) => {
  const { openAccount } = await startApp(t, { LAB: 'false' })
  assertError(t, await (await openAccount()).get(PATH), 404, 'route_not_found', 'LAB=true')
})
