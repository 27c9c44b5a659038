import './on-postgresql.ts'
import { existsSync } from 'node:fs'
import t from 'tap'
import { testPlans } from '../database/postgresql/plan-buffers.ts'
import { startPostgres } from '../support/postgres.ts'
import { makePostgresTemplate } from '../support/test-databases.ts'

/** Where Debian's package postgresql-15 has its programs. PostgreSQL 15 plans some statements in other ways than 18. */
const PROGRAMS = '/usr/lib/postgresql/15/bin'

t.test('no statement on PostgreSQL 15 reads more than it returns', {
  skip: !existsSync(PROGRAMS) && 'PostgreSQL 15 is not installed'
}, async (t) => {
  const server = await startPostgres({ fsync: 'off' }, PROGRAMS)
  t.teardown(server.stop)
  await makePostgresTemplate(server.url)
  process.env['TEST_POSTGRES_URL'] = server.url
  await testPlans(t)
})
