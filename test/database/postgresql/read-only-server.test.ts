// Only on PostgreSQL: SQLite has no server.

import pg from 'pg'
import t, { type Test } from 'tap'
import { migrate } from '../../../src/database/migrations/migrate.ts'
import { startApp } from '../../support/app.ts'
import { database } from '../../support/database.ts'
import { startPostgres } from '../../support/postgres.ts'
import { eventually } from '../../support/receiver.ts'

/** Starts a server of its own with an empty store, and a connection as its superuser. */
async function startServer (t: Test): Promise<{ url: string, admin: pg.Client }> {
  const { url, stop } = await startPostgres()
  t.teardown(stop)
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  t.teardown(async () => { await admin.end() })
  await migrate(url)
  return { url, admin }
}

t.test(
  'writes to a server that turned read-only get 503, reads continue, and writes work again afterwards',
  { skip: database === 'sqlite' && 'SQLite has no server' },
  async (t) => {
    const { url, admin } = await startServer(t)
    const { openAccount, nobody } = await startApp(t, { DATABASE_URL: url })
    const store = await openAccount()
    t.equal((await store.post('/messages', { message: 'Before' })).status, 201)
    t.equal((await nobody.get('/readyz')).status, 200)

    const setReadOnly = async (value: 'on' | 'off'): Promise<void> => {
      await admin.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`)
      await admin.query('SELECT pg_reload_conf()')
      const ready = value === 'on' ? 503 : 200
      await eventually(async () => (await nobody.get('/readyz')).status === ready)
    }
    await setReadOnly('on')
    t.match(await store.post('/messages', { message: 'Meanwhile' }), {
      status: 503, body: { code: 'database_unavailable' }, headers: { 'retry-after': String }
    })
    t.equal((await store.get('/messages')).status, 200)

    await setReadOnly('off')
    t.equal((await store.post('/messages', { message: 'After' })).status, 201)
    t.match((await store.get('/messages')).body, [{ message: 'Before' }, { message: 'After' }])
  }
)

t.test(
  'a write whose right was revoked gets 503, and works again once it is granted',
  { skip: database === 'sqlite' && 'SQLite has no server' },
  async (t) => {
    const { url, admin } = await startServer(t)
    await admin.query('CREATE ROLE clerk LOGIN PASSWORD \'secret\'')
    await admin.query('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk')
    await admin.query('GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO clerk')
    const ofClerk = Object.assign(new URL(url), { username: 'clerk', password: 'secret' })
    const { openAccount } = await startApp(t, { DATABASE_URL: ofClerk.href })
    const store = await openAccount()

    await admin.query('REVOKE INSERT ON messages FROM clerk')
    // The first one has a group of its own.
    const others = ['Dogs', 'Cats', 'Birds', 'Fish'].map(async (name) => await store.post('/categories', { name }))
    t.match(await store.post('/messages', { message: 'Meanwhile' }), {
      status: 503, body: { code: 'database_unavailable' }, headers: { 'retry-after': String }
    })
    const statuses = (await Promise.all(others)).map(({ status }) => status)
    t.same(statuses, [201, 201, 201, 201], 'other writes of the group need no such right')
    await admin.query('GRANT INSERT ON messages TO clerk')
    t.equal((await store.post('/messages', { message: 'After' })).status, 201)
  }
)
