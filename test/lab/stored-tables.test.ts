// Only on SQLite: the migrations of both databases follow from the same models.

import t from 'tap'
import { STORED_TABLES } from '../../src/lab/stored-tables.ts'
import { startApp } from '../support/app.ts'

interface ForeignKey { child: string, parent: string }

t.test('a restore brings back each row that a row of the store refers to, before that one', async (t) => {
  const { app: { database: { prisma } } } = await startApp(t)
  const foreignKeys = await prisma.$queryRawUnsafe<ForeignKey[]>(`
    SELECT m.name AS child, f."table" AS parent
    FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'`)
  const names = STORED_TABLES.map(({ name }) => name)
  const ofStore = foreignKeys.filter(({ child, parent }) => names.includes(child) && parent !== 'accounts')
  t.ok(ofStore.length >= 3)
  for (const { child, parent } of ofStore) {
    const isRestored = names.slice(0, names.indexOf(child) + 1).includes(parent)
    // Otherwise, a restore answers 500 when the row of the parent is gone.
    t.ok(isRestored, `${child} refers to ${parent}: STORED_TABLES must have ${parent} before ${child}`)
  }
})
