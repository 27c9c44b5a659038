import t from 'tap'
import { failover } from '../torture/failover.ts'
import { runScenario } from '../torture/harness.ts'
import { missingPrograms } from '../torture/patroni.ts'
import { scenarios } from '../torture/scenarios.ts'

// The short form, with each fault once. `npm run torture -- failover` runs the full form.

const missing = missingPrograms()
const skip = missing.length > 0 && `there is no ${missing.join(', ')}`

t.test(scenarios['failover']!.promise, { skip, timeout: 900_000 }, async (t) => {
  const { violations, notes, checked } = await runScenario('failover', failover, { serverUrl: 'patroni', quick: true })
  for (const note of notes) t.comment(note)
  t.same(violations, [])
  t.ok(checked > 0, `${checked} acknowledged writes are kept`)
})
