import t from 'tap'
import { startApp, type Client, type TestApp } from '../support/app.ts'
import { freshDatabase } from '../support/database.ts'
import { eventually } from '../support/receiver.ts'
import { setLimits } from './fixture.ts'

const CLIENTS = 64
const REQUESTS = 5

t.test('limits of an account over three processes', async (t) => {
  const DATABASE_URL = await freshDatabase(t)
  const apps: TestApp[] = []
  for (let i = 0; i < 3; i++) apps.push(await startApp(t, { DATABASE_URL }))
  const [first] = apps
  const there = (key: string): Client[] => apps.map(({ withKey }) => withKey(key))
  const [ada, bob] = [await first!.openAccount(), await first!.openAccount()]
  const second = (await ada.post('/account/keys', {})).body.apiKey

  await t.test('all of them learn of limits, and of their end', async (t) => {
    await setLimits(ada)
    t.not((await ada.get('/pets')).headers.ratelimit, undefined, 'the process that responded knows them at once')
    for (const client of there(ada.key!)) {
      await eventually(async () => (await client.get('/pets')).headers.ratelimit !== undefined)
    }
    t.equal((await ada.delete('/lab/limits')).status, 204)
    // The database decides: a process that has not heard of the end yet limits nothing.
    for (const client of there(ada.key!)) t.equal((await client.get('/pets')).headers.ratelimit, undefined)
  })

  /** Sends requests of many clients at once. @returns the number that was accepted, and that was refused */
  async function sendAll (keys: string[]): Promise<{ accepted: number, refused: number }> {
    const clients = keys.flatMap(there)
    const statuses = (await Promise.all(Array.from({ length: CLIENTS }, async (_, i) => {
      const own: number[] = []
      for (let n = 0; n < REQUESTS; n++) own.push((await clients[(i + n) % clients.length]!.get('/pets')).status)
      return own
    }))).flat()
    const count = (status: number): number => statuses.filter((other) => other === status).length
    t.equal(count(200) + count(429), CLIENTS * REQUESTS)
    return { accepted: count(200), refused: count(429) }
  }

  await t.test('exactly as many requests are accepted as a window allows', async (t) => {
    await setLimits(ada)
    for (const client of there(ada.key!)) {
      await eventually(async () => (await client.get('/pets')).headers.ratelimit !== undefined)
    }
    for (const [per, accepted] of [['account', 100], ['key', 200]] as const) {
      await setLimits(ada, { per, requests: 100, windowSeconds: 86_400 })
      const [hers, his] = await Promise.all([sendAll([ada.key!, second]), sendAll([bob.key!])])
      t.same(hers, { accepted, refused: CLIENTS * REQUESTS - accepted }, per)
      t.equal((await ada.get('/lab/limits')).body.refused, hers.refused)
      t.same(his, { accepted: CLIENTS * REQUESTS, refused: 0 }, 'another account')
    }
    // The next window, for a process that has not heard of the move yet.
    await ada.post('/lab/clock/advance', { seconds: 86_400 })
    t.same((await sendAll([ada.key!, second])).accepted, 200)
  })
})
