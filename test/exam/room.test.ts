// Only on SQLite: calls a function without a service.

import t from 'tap'
import { waitFor } from '../../src/exam/room.ts'
import { setClockAhead } from '../support/machine-clock.ts'

t.test('the exam does not give up when the clock of the machine is set ahead', async (t) => {
  let looks = 0
  const found = await waitFor('the second look', async () => {
    if (++looks === 1) setClockAhead(t)
    return looks === 1 ? undefined : looks
  })
  t.equal(found, 2)
})
