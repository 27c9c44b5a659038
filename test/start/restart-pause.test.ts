// Only on SQLite: uses no database.

import t from 'tap'
import { countFailures, pauseAfter } from '../../src/start/restart-pause.ts'

t.test('each process that fails soon after its start makes the pause before the next longer', async (t) => {
  const pauses: number[] = []
  for (let failures = countFailures(0, 0), i = 0; i < 9; i++, failures = countFailures(failures, 100)) {
    pauses.push(pauseAfter(failures))
  }
  t.same(pauses, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000])
})

t.test('a process that has served for a while is replaced soon, whatever was before', async (t) => {
  t.equal(pauseAfter(countFailures(9, 5_000)), 100)
})
