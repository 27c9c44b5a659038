import t from 'tap'
import { startApp } from '../support/app.ts'
import { assertError, assertResponse } from '../support/checks.ts'

t.test('/readyz needs all migrations, and /livez needs nothing', async (t) => {
  const { app, nobody } = await startApp(t)
  const { prisma } = app.database
  assertResponse(t, await nobody.get('/readyz'), 200, { status: 'ok' })
  const states = {
    'all are missing': "DELETE FROM _prisma_migrations WHERE migration_name LIKE '2%'",
    'the last one is missing': `DELETE FROM _prisma_migrations WHERE migration_name = (
      SELECT max(migration_name) FROM _prisma_migrations)`,
    'the first one is missing': `DELETE FROM _prisma_migrations WHERE migration_name = (
      SELECT min(migration_name) FROM _prisma_migrations)`,
    'it has not finished': 'UPDATE _prisma_migrations SET finished_at = NULL',
    'it was rolled back': 'UPDATE _prisma_migrations SET rolled_back_at = started_at'
  }
  await prisma.$executeRawUnsafe('CREATE TABLE kept_migrations AS SELECT * FROM _prisma_migrations')
  for (const [state, sql] of Object.entries(states)) {
    await prisma.$executeRawUnsafe(sql)
    assertError(t, await nobody.get('/readyz'), 503, 'database_unavailable', /\w/, state)
    assertResponse(t, await nobody.get('/livez'), 200, { status: 'ok' })
    await prisma.$executeRawUnsafe('DELETE FROM _prisma_migrations')
    await prisma.$executeRawUnsafe('INSERT INTO _prisma_migrations SELECT * FROM kept_migrations')
    assertResponse(t, await nobody.get('/readyz'), 200, { status: 'ok' })
  }
})
