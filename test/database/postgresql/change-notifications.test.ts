import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import type { Changes } from '../../../src/database/group-commit/command.ts'
import { startApp } from '../../support/app.ts'
import { database } from '../../support/database.ts'
import { newWebhook } from '../../support/fixtures.ts'
import { eventually } from '../../support/receiver.ts'
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
