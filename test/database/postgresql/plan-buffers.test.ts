// Only on PostgreSQL: EXPLAIN of SQLite counts no pages.

import t from 'tap'
import { database } from '../../support/database.ts'
import { testPlans } from './plan-buffers.ts'

t.test('no statement reads more than it returns', {
  skip: database === 'sqlite' && 'EXPLAIN of SQLite counts no pages'
}, async (t) => {
  await testPlans(t)
})
