import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { expiry } from '../../src/accounts/expiry.ts'
import type { Commit } from '../../src/database/group-commit/committer.ts'
import { startApp, type Client, type TestApp } from '../support/app.ts'
import { assertError } from '../support/checks.ts'
import { freshDatabase } from '../support/database.ts'
import { newCategory } from '../support/fixtures.ts'
import { eventually } from '../support/receiver.ts'
import { openStream } from '../support/stream.ts'
import { startJobAlone } from '../support/jobs.ts'

/** Opens an account whose time is over: as if it had been opened long ago. Its key is in no cache. */
async function openExpired ({ app, openAccount }: TestApp): Promise<Client> {
  const client = await openAccount()
  const expiresAt = new Date(Date.now() - 1_000)
  await app.database.prisma.account.update({ where: { id: client.account! }, data: { expiresAt } })
  return client
}

async function deletedAt ({ app }: TestApp, { account }: Client): Promise<Date | null | undefined> {
  return (await app.database.prisma.account.findUnique({ where: { id: account! } }))?.deletedAt
}

t.test('an account tells when it expires', async (t) => {
  const [free, limited] = [await startApp(t), await startApp(t, { ACCOUNT_TTL_SECONDS: '3600' })]

  /** Opens an account. @returns the time between its creation and its expiry, in s */
  async function lifetime ({ nobody, withKey }: TestApp, fields: object): Promise<number | undefined> {
    const { status, body } = await nobody.post('/accounts', { name: 'A store', ...fields })
    t.equal(status, 201)
    const { apiKey, ...account } = body
    t.same((await withKey(apiKey).get('/account')).body, account)
    return account.expiresAt && (Date.parse(account.expiresAt) - Date.parse(account.createdAt)) / 1_000
  }

  t.equal(await lifetime(free, {}), undefined, 'never, if nobody says so')
  t.equal(await lifetime(free, { expiresIn: 60 }), 60)
  t.equal(await lifetime(free, { expiresIn: 2_592_000 }), 2_592_000)
  t.equal(await lifetime(limited, {}), 3_600)
  t.equal(await lifetime(limited, { expiresIn: 60 }), 60)
  t.equal(await lifetime(limited, { expiresIn: 86_400 }), 3_600, 'the setting bounds what clients ask for')
  for (const expiresIn of [0, 59, 2_592_001, 90.5, '60', null]) {
    const answer = await free.nobody.post('/accounts', { name: 'A store', expiresIn })
    assertError(t, answer, 400, 'validation_failed', /expiresIn must be/)
  }
})

t.test('the keys and streams of an account end in every process when it expires', async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const here = await startApp(t, { DATABASE_URL, ACCOUNT_TTL_SECONDS: '2' })
  const there = await startApp(t, { DATABASE_URL })
  const bob = await there.openAccount()
  const { body: { apiKey, expiresAt } } = await here.nobody.post('/accounts', { name: 'A store' })
  const stream = await openStream(there, { key: apiKey })
  await Promise.all([here, there].map(async ({ withKey }) => {
    const ada = withKey(apiKey)
    for (;;) {
      const sentAt = Date.now()
      const answer = await ada.get('/pets')
      // On a busy machine the last answer before the expiry may come after it.
      if (Date.now() < Date.parse(expiresAt)) t.equal(answer.status, 200)
      if (answer.status === 401) assertError(t, answer, 401, 'unauthorized', /has expired|was revoked/)
      if (sentAt < Date.parse(expiresAt)) {
        await sleep(20)
        continue
      }
      t.equal(answer.status, 401, 'at once, although the key is in the cache')
      break
    }
  }))
  await stream.ended
  t.equal((await bob.get('/pets')).status, 200, 'the other account stays')
})

t.test('a moved clock does not make an account expire', async (t) => {
  const { nobody, withKey } = await startApp(t)
  const { body: { apiKey } } = await nobody.post('/accounts', { name: 'A store', expiresIn: 3_600 })
  const ada = withKey(apiKey)
  t.equal((await ada.post('/lab/clock/advance', { seconds: 7_200 })).status, 200)
  t.equal((await ada.get('/account')).status, 200)
})

t.test('an account that has expired is deleted, and its neighbours stay', async (t) => {
  const store = await startApp(t)
  const [ada, bob] = [await openExpired(store), await store.openAccount()]
  // The sweep of the store itself may have been faster.
  assertError(t, await ada.post('/categories', { name: 'Dogs' }), 401, 'unauthorized', /has expired|was revoked/)

  const { read, commit } = store.app
  const pass = await startJobAlone(t, { read, commit }, (app) => app.register(expiry))
  // More than one step.
  const crowd = await Promise.all(Array.from({ length: 12 }, async () => await openExpired(store)))
  pass(5_000)
  await eventually(async () => (await Promise.all([ada, ...crowd].map(async (client) =>
    await deletedAt(store, client)))).every((time) => time instanceof Date))
  assertError(t, await ada.get('/account'), 401, 'unauthorized', /was revoked|was deleted/)
  t.equal(await deletedAt(store, bob), null)
  await newCategory(bob)
})

t.test('accounts that expire together are deleted a few at a time', async (t) => {
  const left = new Set(Array.from({ length: 35 }, (_, i) => i + 1))
  const steps: number[] = []
  let inFlight = 0
  const read = (async () => {
    steps.push(0)
    return { ids: JSON.stringify([...left].slice(0, 10)) }
  }) as never
  const commit = (async (_command: unknown, { account }: { account: number }) => {
    inFlight++
    steps[steps.length - 1] = Math.max(steps.at(-1)!, inFlight)
    await turn()
    inFlight--
    left.delete(account)
    return { record: undefined }
  }) as unknown as Commit
  const pass = await startJobAlone(t, { read, commit }, (app) => app.register(expiry))
  pass(5_000)
  await eventually(() => steps.length === 5)
  t.same(steps, [10, 10, 10, 5, 0])
})
