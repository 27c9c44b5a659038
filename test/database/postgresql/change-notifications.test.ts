// Only on PostgreSQL: one process serves a SQLite file.

import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { createNotifier } from '../../../src/database/change-notifications.ts'
import type { Changes } from '../../../src/database/unit-of-work/success.ts'
import { openDatabase } from '../../../src/database/open-database.ts'
import { startApp } from '../../support/app.ts'
import { database, freshDatabase } from '../../support/database.ts'
import { newWebhook } from '../../support/fixtures.ts'
import { eventually } from '../../support/receiver.ts'
import { rejectedWithin } from '../../support/revocation.ts'
import { stallingNetwork } from '../../support/stall.ts'
import { openStream } from '../../support/stream.ts'

const skip = database === 'sqlite' && 'one process serves a SQLite file'

t.test('services that share a database announce changes to each other', { skip }, async (t) => {
  const here = await startApp(t)
  const { DATABASE_URL } = here.config
  const there = await startApp(t, { DATABASE_URL })
  const ada = await here.openAccount()
  const heard: Changes[] = []
  there.app.onChange((changes) => { heard.push(changes) })
  const heardOf = (channel: string, id: number): boolean => heard.some(({ [channel]: ids = [] }) => ids.includes(id))

  /** Writes until the other service is told of it: it may still be connecting. */
  async function untilHeard (): Promise<void> {
    heard.length = 0
    await eventually(async () => {
      await ada.post('/messages', { message: 'Hello' })
      await sleep(50)
      return heardOf('events', ada.account!)
    })
  }

  await t.test('events, and webhooks that were changed or deleted', async (t) => {
    await untilHeard()
    const [changed, deleted] = [await newWebhook(ada), await newWebhook(ada)]
    await ada.patch(`/webhooks/${changed}`, { enabled: false })
    await ada.delete(`/webhooks/${deleted}`)
    await eventually(() => heardOf('webhooks', changed) && heardOf('webhooks', deleted))
    t.pass('both arrived')
  })

  await t.test('the webhooks of a deleted account', async (t) => {
    const bob = await here.openAccount()
    const id = await newWebhook(bob)
    await bob.delete('/account')
    await eventually(() => heardOf('webhooks', id))
    t.pass('it arrived')
  })

  await t.test('also after the connections that listen were cut', async (t) => {
    const admin = new pg.Client({ connectionString: DATABASE_URL })
    await admin.connect()
    const cut = async (): Promise<number> => {
      const { rowCount } = await admin.query(`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'petstore events'`)
      return rowCount ?? 0
    }
    t.equal(await cut(), 2)
    await untilHeard()
    const stream = await openStream(there, ada)
    t.teardown(stream.close)
    const { headers: { 'event-id': last } } = await ada.get('/events?limit=1')
    await stream.until(Number(last))
    await admin.end()
  })
})

t.test('a connection on which nothing arrives any more is replaced', { skip }, async (t) => {
  const url = await freshDatabase(t)
  const network = await stallingNetwork(t, url)
  const opened = await openDatabase({ url, pool: 2, timeout: 60_000 })
  const heard: number[] = []
  const notifier = createNotifier(opened, {
    url: network.url,
    onChange: ({ numbers = [] }) => { heard.push(...numbers) },
    onError () {},
    timeoutMs: 1_000
  })
  const sender = new pg.Client({ connectionString: url })
  await sender.connect()
  t.teardown(async () => {
    notifier.close()
    await Promise.all([opened.close(), sender.end()])
  })
  const untilHeard = async (number: number): Promise<void> => {
    await eventually(async () => {
      await sender.query(`NOTIFY petstore_changes, '{"origin": "other", "changes": {"numbers": [${number}]}}'`)
      await sleep(20)
      return heard.includes(number)
    })
  }
  await untilHeard(1)
  network.silence()
  await untilHeard(2)
  t.pass('it was')
})

t.test('what changes before there is a connection is announced, as far as it has room', { skip }, async (t) => {
  const url = await freshDatabase(t)
  const opened = await openDatabase({ url, pool: 2, timeout: 60_000 })
  t.teardown(opened.close)
  const heard: Changes[] = []
  const notifierOf = (onChange: (changes: Changes) => void): ReturnType<typeof createNotifier> => {
    const notifier = createNotifier(opened, { url, onChange, onError () {} })
    t.teardown(notifier.close)
    return notifier
  }
  notifierOf((changes) => { heard.push(changes) })
  await eventually(async () => {
    notifierOf(() => {}).announce({ numbers: [1] })
    await sleep(100)
    return heard.length > 0
  })
  heard.length = 0
  const early = notifierOf(() => {})
  for (let i = 0; i < 10; i++) early.announce({ many: Array.from({ length: 100 }, (_, n) => 100 * i + n), few: [1, 2] })
  await eventually(() => heard.some(({ many }) => many !== undefined))
  t.match(heard.find(({ many }) => many !== undefined), { few: [1, 2], many: { length: 398 } })
})

t.test('a key ends in time also where its look-up was slow and no word of its revocation came', { skip }, async (t) => {
  const here = await startApp(t)
  const { DATABASE_URL } = here.config
  const network = await stallingNetwork(t, DATABASE_URL)
  const there = await startApp(t, { DATABASE_URL: network.url })
  const ada = await here.openAccount()
  const { body: { id, apiKey } } = await ada.post('/account/keys', {})
  // The connection is open and idle when the key is looked up.
  await eventually(async () => (await there.nobody.get('/readyz')).status === 200)
  const admin = new pg.Client({ connectionString: DATABASE_URL })
  await admin.connect()
  t.teardown(async () => { await admin.end() })
  network.silence()
  const { rows: [{ began }] } = await admin.query('SELECT clock_timestamp() AS began')
  const client = there.withKey(apiKey, ada.account)
  const slow = client.get('/account')
  await eventually(async () => {
    const { rows } = await admin.query(`
      SELECT 1 FROM pg_stat_activity
      WHERE query_start > $1 AND state = 'idle' AND query LIKE '%JOIN api_keys k ON k.hash%'`, [began])
    return rows.length > 0
  })
  await admin.query(`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'petstore events'`)
  await ada.delete(`/account/keys/${id}`)
  const revokedAt = Date.now()
  await sleep(3_000)
  network.goOn()
  t.equal((await slow).status, 200, 'the look-up began before the revocation')
  await rejectedWithin(t, 5_000 - (Date.now() - revokedAt), async () => (await client.get('/account')).status)
})

t.test('a notification is only a hint, whatever it says and whoever sends it', { skip }, async (t) => {
  const { config, app, openAccount, withKey } = await startApp(t)
  const ada = await openAccount()
  const { body: { id, apiKey } } = await ada.post('/account/keys', {})
  const second = withKey(apiKey, ada.account)
  t.equal((await second.get('/account')).status, 200)
  const sender = new pg.Client({ connectionString: config.DATABASE_URL })
  await sender.connect()
  t.teardown(async () => { await sender.end() })
  const heard: Changes[] = []
  app.onChange((changes, isHint) => { if (isHint) heard.push(changes) })
  const notify = async (payload: unknown): Promise<void> => {
    const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
    await sender.query('SELECT pg_notify($1, $2)', ['petstore_changes', text])
  }
  /** Waits until all notifications so far arrived: they arrive in order. */
  const untilHeard = async (number: number): Promise<void> => {
    await eventually(async () => {
      await notify({ origin: 'other', changes: { numbers: [number] } })
      await sleep(20)
      return heard.some(({ numbers = [] }) => numbers.includes(number))
    })
  }
  await untilHeard(1)
  heard.length = 0

  for (const payload of [
    '', 'x', '{', 'null', '1', '"x"', '[]', '{}', '{"origin":"x"}', '{"origin":1,"changes":{}}',
    '{"origin":"x","changes":null}', '{"origin":"x","changes":[1]}', '{"origin":"x","changes":{"events":1}}',
    '{"origin":"x","changes":{"events":[null,"1",1.5,{}]}}', '{"origin":"x","schema":null,"changes":{"events":[1]}}',
    { origin: 'x', schema: 'another', changes: { events: [1], accounts: [ada.account] } }
  ]) await notify(payload)
  await untilHeard(2)
  const others = heard.filter(({ numbers }) => numbers === undefined)
  t.same(others, [], 'what is no notification, or not for this store, is ignored')

  await notify({ origin: 'x', changes: { accounts: [ada.account], apiKeys: [id], __proto__: [1] } })
  await untilHeard(3)
  t.equal((await ada.get('/account')).status, 200, 'a key is not refused because of one')

  await sender.query('DELETE FROM api_keys WHERE id = $1', [id])
  await notify({ origin: 'x', changes: { apiKeys: [id] } })
  await untilHeard(4)
  t.equal((await second.get('/account')).status, 401, 'but looked up again')
})
