import t from 'tap'
import { startApp, type Client, type TestApp } from '../support/app.ts'
import { assertError, assertRejectsInput, assertResponse } from '../support/checks.ts'
import { freshDatabase } from '../support/database.ts'
import { eventually } from '../support/receiver.ts'
import { newFault } from './fixture.ts'

const REFUSED = { operation: 'listPets', effect: { type: 'refuse', status: 503 } }

/** Sends requests one after another. @returns an x for each that was hit, and a dot for each other */
async function hitsOf (clients: Client[], count: number): Promise<string> {
  let hits = ''
  for (let i = 0; i < count; i++) {
    const { status } = await clients[i % clients.length]!.get('/pets')
    hits += status === 503 ? 'x' : '.'
  }
  return hits
}

/** The requests that a rate of 0.3 with seed 7 selects, up to the eighth. */
const SEVENTH = 'xx.....x..xx..x.x.x'

t.test('faults that last', async (t) => {
  const { openAccount, app: { database: { prisma } } } = await startApp(t)

  await t.test('a fault hits every matching request until its time has passed', async (t) => {
    const ada = await openAccount()
    const { status, body: fault } = await ada.post('/lab/faults', { ...REFUSED, after: 1, forSeconds: 3_600 })
    t.equal(status, 201)
    t.match(fault, { after: 1, forSeconds: 3_600, passed: 0, hits: 0 })
    t.notOk('times' in fault)
    t.equal(await hitsOf([ada], 5), '.xxxx')
    assertResponse(t, await ada.get('/lab/faults'), 200, [{ ...fault, passed: 1, hits: 4 }])

    await ada.post('/lab/clock/advance', { seconds: 3_000 })
    t.equal(await hitsOf([ada], 1), 'x')
    await ada.post('/lab/clock/advance', { seconds: 600 })
    t.equal(await hitsOf([ada], 2), '..')
    assertResponse(t, await ada.get('/lab/faults'), 200, [])
    assertResponse(t, await ada.get(`/lab/faults/${fault.id}`), 200, { ...fault, passed: 1, hits: 5 })
    const { body: events } = await ada.get('/events?limit=100')
    t.equal(events.filter(({ type }: { type: string }) => type === 'fault.hit').length, 5)
  })

  await t.test('the clock of one account ends no fault of another', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    for (const client of [ada, bob]) await newFault(client, { ...REFUSED, forSeconds: 3_600 })
    await ada.post('/lab/clock/advance', { seconds: 3_600 })
    t.equal(await hitsOf([ada, bob], 4), '.x.x')
  })

  await t.test('requests do not read a fault that has ended', async (t) => {
    const ada = await openAccount()
    await newFault(ada, { ...REFUSED, forSeconds: 60 })
    await newFault(ada, { ...REFUSED, forSeconds: 3_600 })
    await ada.post('/lab/clock/advance', { seconds: 60 })
    // A statement that returns this number fails on SQLite.
    const first = await prisma.fault.findFirstOrThrow({ where: { accountId: ada.account! }, orderBy: { id: 'asc' } })
    await prisma.fault.update({ where: { id: first.id }, data: { seed: 2n ** 60n } })
    t.match((await ada.get('/pets')).body, { code: 'injected_fault' })
  })

  await t.test('a fault has no end after the last instant, where the clock stops', async (t) => {
    const ada = await openAccount()
    const to = '9999-12-31T23:59:59.999Z'
    await ada.post('/lab/clock/advance', { to })
    await eventually(async () => (await ada.get('/lab/clock')).headers['petstore-clock'] === to)
    const { body: fault } = await ada.post('/lab/faults', { ...REFUSED, forSeconds: 60 })
    assertResponse(t, await ada.get('/lab/faults'), 200, [fault])
    t.equal(await hitsOf([ada], 2), 'xx')
  })

  await t.test('a fault that has ended is none of the hundred, and its list is deleted by its tag', async (t) => {
    const ada = await openAccount()
    const faults = Array.from({ length: 20 }, () => ({ ...REFUSED, forSeconds: 60 }))
    for (let i = 0; i < 5; i++) t.equal((await ada.post('/lab/scenarios', { faults })).status, 201)
    assertError(t, await ada.post('/lab/faults', REFUSED), 409, 'fault_limit_reached')
    await ada.post('/lab/clock/advance', { seconds: 60 })
    const id = await newFault(ada, REFUSED)
    const list = await ada.get('/lab/faults')
    t.same(list.body.map((fault: { id: number }) => fault.id), [id])
    assertResponse(t, await ada.delete('/lab/faults', { 'if-match': list.headers.etag! }), 204)
  })
})

t.test('a rate hits the same requests in every run and by every process', async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const apps: TestApp[] = []
  for (let i = 0; i < 3; i++) apps.push(await startApp(t, { DATABASE_URL }))
  const there = async (): Promise<Client[]> => {
    const ada = await apps[0]!.openAccount()
    return apps.map(({ withKey }) => withKey(ada.key!, ada.account))
  }

  const one = await there()
  const id = await newFault(one[0]!, { ...REFUSED, rate: 0.3, seed: 7, times: 8 })
  t.equal(await hitsOf([one[0]!], SEVENTH.length + 5), `${SEVENTH}.....`)
  const passed = SEVENTH.replaceAll('x', '').length
  t.match((await one[0]!.get(`/lab/faults/${id}`)).body, { rate: 0.3, seed: 7, times: 8, passed, hits: 8 })

  const all = await there()
  await newFault(all[0]!, { ...REFUSED, rate: 0.3, seed: 7, forSeconds: 60 })
  // A process that knows a younger fault of the account knows this one.
  await newFault(all[0]!, { operation: 'getAccount', effect: { type: 'refuse', status: 503 }, forSeconds: 60 })
  await Promise.all(all.map(async (client) => {
    await eventually(async () => (await client.get('/account')).status === 503)
  }))
  t.equal(await hitsOf(all, SEVENTH.length), SEVENTH)

  const other = await there()
  const { body: fault } = await other[0]!.post('/lab/faults', { ...REFUSED, rate: 0.3, times: 1_000 })
  t.equal(fault.seed, 0)
  t.not(await hitsOf([other[0]!], SEVENTH.length), SEVENTH)
})

t.test('scenarios', async (t) => {
  const { openAccount } = await startApp(t)
  const valid = { faults: [REFUSED] }

  await t.test('bad input is refused with the field and the rule', async (t) => {
    const ada = await openAccount()
    await assertRejectsInput(t, async (body) => await ada.post('/lab/scenarios', body), [
      [{}, 'faults is required'],
      [{ faults: [] }, 'faults must have at least 1 item'],
      [{ faults: Array(21).fill(REFUSED) }, 'faults must have at most 20 items'],
      [{ ...valid, name: 'x' }, '"name" is not allowed'],
      [{ faults: [REFUSED, { operation: 'listPets' }] }, 'faults.effect is required'],
      [{ faults: [REFUSED, { ...REFUSED, operation: 'x' }] }, 'Fault 2 of the scenario: operation must be the'],
      [{ faults: [REFUSED, { ...REFUSED, seed: 1 }] }, 'Fault 2 of the scenario: seed must be left out without rate']
    ])
    assertResponse(t, await ada.get('/lab/faults'), 200, [])
  })

  await t.test('its faults are created together, in order', async (t) => {
    const ada = await openAccount()
    const faults = [{ ...REFUSED, times: 2 }, { ...REFUSED, after: 1, forSeconds: 60, rate: 0.5, seed: 1 }]
    const created = await ada.post('/lab/scenarios', { faults })
    t.equal(created.status, 201)
    t.match(created.body, [{ times: 2 }, { after: 1, forSeconds: 60, rate: 0.5, seed: 1 }])
    assertResponse(t, await ada.get('/lab/faults'), 200, created.body)
    const [older] = created.body
    const answers = [await ada.get('/pets'), await ada.get('/pets')]
    t.same(answers.map(({ headers }) => headers['petstore-fault']), [String(older.id), String(older.id)])
  })

  await t.test('one fault that is refused refuses all', async (t) => {
    const [ada, bob] = [await openAccount(), await openAccount()]
    const [{ id: foreign }] = (await bob.get('/account/keys')).body
    const refused = await ada.post('/lab/scenarios', { faults: [REFUSED, { ...REFUSED, keyId: foreign }] })
    assertError(t, refused, 409, 'unknown_api_key')
    const all = { faults: Array.from({ length: 20 }, () => ({ operation: 'webhook', effect: { type: 'reset' } })) }
    for (let i = 0; i < 4; i++) t.equal((await ada.post('/lab/scenarios', all)).status, 201)
    await newFault(ada)
    assertError(t, await ada.post('/lab/scenarios', all), 409, 'fault_limit_reached')
    t.equal((await ada.get('/lab/faults?limit=100')).body.length, 81)
    t.equal(await hitsOf([ada], 1), '.')
    assertResponse(t, await bob.get('/lab/faults'), 200, [])
  })
})
