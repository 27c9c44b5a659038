// Only on SQLite: calls functions that use no database.

import { existsSync, readdirSync } from 'node:fs'
import { mock } from 'node:test'
import t from 'tap'
import { allWrites } from '../../support/all-writes.ts'
import { decide, type Decisions } from '../../support/decide.ts'

const TESTS = new URL('../../', import.meta.url)

const folders = readdirSync(TESTS).filter((name) => existsSync(new URL(`${name}/decisions.ts`, TESTS)))
const files = await Promise.all(folders.map(async (name) =>
  await import(`../../${name}/decisions.ts`) as { decisions: Decisions[] }))
const decisions = files.flatMap((file) => file.decisions)

t.test('every write has a table of its decisions', async (t) => {
  const names = (writes: Array<{ name: string }>): string[] => writes.map(({ name }) => name).sort()
  const written = names(await allWrites())
  t.same(names(decisions.map(({ write }) => write)), written, 'test/<name>/decisions.ts has the writes of a resource')
})

for (const { write, cases } of decisions) {
  t.test(`${write.name} decides over the rows of its account`, async (t) => {
    t.teardown(() => { mock.timers.reset() })
    for (const [name, example] of Object.entries(cases)) {
      const outcome = decide(write, example)
      t.strictSame(outcome, example.outcome, name)
      mock.timers.enable({ apis: ['Date'], now: 0 })
      t.strictSame(decide(write, example), outcome, `${name}, at another time`)
      mock.timers.reset()
    }
  })
}
