// Only on PostgreSQL: a connection to SQLite keeps its statements in this process.

import t from 'tap'
import { queryRows } from '../../../src/database/statements.ts'
import { startApp } from '../../support/app.ts'
import { database } from '../../support/database.ts'
import { createRecords, loadFixtures, mergeTables } from '../../support/fixture.ts'
import { operationsOf, pathOf, type Operation } from '../../support/operations.ts'

/** Statements that a connection keeps prepared, each of about 0.1 MB in the server. */
const MAX_STATEMENTS = 150

const COUNT = 'SELECT count(*) AS count FROM pg_prepared_statements'

const fixtures = await loadFixtures()

t.test(
  'a client that sends every list and every write does not use up the statements of a connection',
  { skip: database === 'sqlite' && 'SQLite prepares no statements in a server' },
  async (t) => {
    // One connection for reads, and one for writes: each counts its own statements.
    const { app, openAccount } = await startApp(t, { DATABASE_POOL: '2' })
    const ada = await openAccount()
    const ids = await createRecords(ada, fixtures)
    for (const operation of operationsOf(app).filter(isList)) {
      for (const query of queriesOf(operation)) {
        const path = `${pathOf(operation, ids)}?${query}`
        await ada.get(path)
        // Reads that come together have a statement of their own.
        await Promise.all([ada.get(path), ada.get(path), ada.get(path)])
      }
    }
    const [reads] = await queryRows<{ count: number }>(app.database.read, COUNT)
    t.ok(reads!.count > 20 && reads!.count <= MAX_STATEMENTS, `reads prepared ${reads!.count} statements`)

    for (const prepare of Object.values(mergeTables(fixtures.map(({ changes }) => changes)))) {
      const bob = await openAccount()
      const { method, path, bodies: [body] } = await prepare(bob)
      await bob.request(method, path, { body })
    }
    await app.database.transact(async ({ run }) => {
      const [writes] = await queryRows<{ count: number }>(run, COUNT)
      t.ok(writes!.count > 50 && writes!.count <= MAX_STATEMENTS, `writes prepared ${writes!.count} statements`)
    })
  }
)

function isList ({ method, parameters }: Operation): boolean {
  return method === 'GET' && parameters.some(({ name }) => name === 'limit')
}

/** Returns every combination of filters in both orders, and every length of a page. */
function queriesOf ({ parameters }: Operation): URLSearchParams[] {
  const paging = ['limit', 'cursor', 'after', 'sort']
  const filters = parameters.filter(({ in: place, name }) => place === 'query' && !paging.includes(name))
  const orders = parameters.some(({ name }) => name === 'sort') ? [{ sort: 'id' }, { sort: '-id' }] : [{}]
  let combinations: Array<Record<string, string>> = [{}]
  for (const { name, schema: { example, items, enum: values } } of filters) {
    const value = String(example ?? items?.example ?? values?.[0] ?? 1)
    combinations = combinations.flatMap((set) => [set, { ...set, [name]: value }])
  }
  return [
    ...combinations.flatMap((set) => orders.map((order) => new URLSearchParams({ ...set, ...order }))),
    ...Array.from({ length: 100 }, (_, i) => new URLSearchParams({ limit: String(i + 1) }))
  ]
}
