// Only on PostgreSQL: SQLite prepares statements anew by itself.

import pg from 'pg'
import t from 'tap'
import { startApp } from '../../support/app.ts'
import { database } from '../../support/database.ts'
import { createRecords, loadFixtures, mergeTables } from '../../support/fixture.ts'

const fixtures = await loadFixtures()
const CHANGES = mergeTables(fixtures.map(({ changes }) => changes))
const LISTS = ['/pets', '/categories', '/store/orders', '/inventory', '/messages', '/events', '/webhooks', '/account']

t.test(
  'an operator alters tables while the service runs, and every operation goes on',
  { skip: database === 'sqlite' && 'SQLite prepares statements anew by itself' },
  async (t) => {
    const { config, openAccount } = await startApp(t)
    const admin = new pg.Client({ connectionString: config.DATABASE_URL })
    await admin.connect()
    t.teardown(async () => { await admin.end() })
    const ada = await openAccount()
    await createRecords(ada, fixtures)
    const useAll = async (): Promise<void> => {
      for (const [operationId, prepare] of Object.entries(CHANGES)) {
        const bob = await openAccount()
        const { method, path, bodies: [body] } = await prepare(bob)
        const answer = await bob.request(method, path, { body })
        t.ok(answer.status < 300, `${operationId}: ${answer.text}`)
      }
      const answers = await Promise.all(LISTS.map(async (path) => await ada.get(path)))
      for (const [i, { status, text }] of answers.entries()) t.equal(status, 200, `${LISTS[i]}: ${text}`)
    }
    await useAll()
    const { rows } = await admin.query<{ statement: string }>(`
      SELECT format('ALTER TABLE %I ALTER COLUMN %I TYPE %s', c.table_name, c.column_name,
        CASE c.data_type WHEN 'integer' THEN 'bigint' ELSE 'varchar' END) AS statement
      FROM information_schema.columns c
      WHERE c.table_schema = 'public' AND c.table_name <> '_prisma_migrations' AND c.data_type IN ('integer', 'text')`)
    t.ok(rows.length > 20)
    for (const { statement } of rows) await admin.query(statement)
    await useAll()
  }
)
