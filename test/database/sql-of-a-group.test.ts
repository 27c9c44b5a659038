import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { PipelinedClient } from '../../src/database/postgresql/pipelined-client.ts'
import { SqliteConnection } from '../../src/database/sqlite/connection.ts'
import { DiskSpeed } from '../../src/database/sqlite/disk-speed.ts'
import type { OwnStatement } from '../../src/database/statements.ts'
import { startApp } from '../support/app.ts'
import { database } from '../support/database.ts'
import { newOrder, newWebhook, stocked } from '../support/fixtures.ts'
import { ignoreKeyUse, inOneGroup } from '../support/groups.ts'

const PAGE = 'docs/explanation/sql-of-a-group.md'

/** Collects the statements of each transaction, as its connection gets them, until the test ends. */
function collectTransactions (t: Test): OwnStatement[][] {
  const transactions: OwnStatement[][] = []
  const open = new Map<object, OwnStatement[]>()
  const collect = (connection: object, statement: OwnStatement): void => {
    if (statement.sql.startsWith('BEGIN')) open.set(connection, [])
    open.get(connection)?.push(statement)
    if (statement.sql !== 'COMMIT') return
    transactions.push(open.get(connection)!)
    open.delete(connection)
  }
  const { all } = SqliteConnection.prototype
  const { isSlow } = DiskSpeed.prototype
  const { run } = PipelinedClient.prototype
  // In the thread for slow disks, this process would not see them.
  DiskSpeed.prototype.isSlow = () => false
  SqliteConnection.prototype.all = function (sql, values) {
    collect(this, { sql, values })
    return all.call(this, sql, values)
  }
  PipelinedClient.prototype.run = async function (statements) {
    for (const statement of statements) collect(this, statement)
    return await run.call(this, statements)
  }
  t.teardown(() => {
    SqliteConnection.prototype.all = all
    DiskSpeed.prototype.isSlow = isSlow
    PipelinedClient.prototype.run = run
  })
  return transactions
}

/** Returns a statement with its parameters as the page shows it. */
function shown ({ sql, values }: OwnStatement): string {
  return [sql.trim(), ...values.map((value, i) => `-- $${i + 1}: ${String(value)}`)].join('\n')
}

/** Returns the statements of a section of the page, which empty lines separate. */
function statementsOf (section: string): string[] {
  const [, text = ''] = readFileSync(PAGE, 'utf8').split(new RegExp(`^## ${section}$`, 'm'))
  const [own = ''] = text.split(/^## /m)
  return [...own.matchAll(/^```sql\n([^]*?)^```/gm)].flatMap(([, block]) => block!.trim().split('\n\n'))
}

/** Removes what may differ: the breaks of lines, and times. A long value continues in comments. */
function comparable (statement: string): string {
  return statement.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME').replace(/^-- {2,}/gm, '').replace(/\s+/g, '')
}

t.test('the page about the SQL of a group shows what the service sends', async (t) => {
  const { app, openAccount } = await startApp(t, { DATABASE_POOL: '2' })
  ignoreKeyUse(app)
  const [ada, bob] = [await openAccount(), await openAccount()]
  const [petId, other] = [await stocked(ada, 5), await stocked(bob, 1)]
  const orderId = await newOrder(bob, other)
  await newWebhook(bob)
  const transactions = collectTransactions(t)

  const answers = await inOneGroup(app, [
    async () => await ada.post('/pets', { name: 'Max', categoryId: 1 }),
    async () => await ada.post('/store/orders', { petId }, { 'idempotency-key': 'first-order' }),
    async () => await bob.delete(`/store/orders/${orderId}`)
  ])
  t.strictSame(answers.map(({ status }) => status), [201, 201, 204])
  // A sweep of the service can come between.
  const sent = transactions.map((statements) => statements.map(shown))
    .find((statements) => statements.some((statement) => statement.includes('first-order')))!
  const page = statementsOf(database === 'sqlite' ? 'SQLite' : 'PostgreSQL')
  for (const [i, statement] of sent.entries()) {
    t.equal(comparable(page[i] ?? ''), comparable(statement), `statement ${i + 1} of ${PAGE} must be:\n${statement}`)
  }
  t.equal(page.length, sent.length)
})
