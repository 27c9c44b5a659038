import t from 'tap'
import { database, postgresServer } from '../support/database.ts'
import { scenarios } from './scenarios.ts'
import { runScenario } from './harness.ts'

// Runs the short forms of the torture scenarios that have one on this database. `npm run torture` runs the full forms.

const serverUrl = database === 'postgresql' ? await postgresServer() : undefined

for (const [name, entry] of Object.entries(scenarios)) {
  const { scenario, promise, databases, quickDatabases = databases, fullFormOnly = false } = entry
  if (fullFormOnly || !quickDatabases.includes(database)) continue
  await t.test(promise, { timeout: 900_000 }, async (t) => {
    const { requests, violations, notes } = await runScenario(name, scenario, { serverUrl, quick: true })
    for (const note of notes) t.comment(note)
    t.same(violations, [])
    t.ok(requests > 0, `${requests} requests`)
  })
}
