import t from 'tap'
import { database } from '../support/database.ts'
import { programs } from './programs.ts'
import { runScenario } from './harness.ts'

// The torture programs, each in a short form; `npm run torture` runs them whole.

/** A busy machine takes far longer than the few minutes that they need. */
t.setTimeout(600_000)

const serverUrl = database === 'postgresql' ? process.env['TEST_POSTGRES_URL'] : undefined
if (database === 'postgresql' && serverUrl === undefined) throw new Error('No PostgreSQL: run this test with `DATABASE=postgresql npm test -- <file>`')

for (const [name, { program, promise, databases, wholeOnly = false }] of Object.entries(programs)) {
  if (wholeOnly || !databases.includes(database)) continue
  await t.test(promise, { timeout: 300_000 }, async (t) => {
    const { requests, violations, notes } = await runScenario(name, program, { serverUrl, quick: true })
    for (const note of notes) t.comment(note)
    t.same(violations, [])
    t.ok(requests > 0, `${requests} requests`)
  })
}
