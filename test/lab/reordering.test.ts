// Only on SQLite: calls pure functions.

import t from 'tap'
import type { ClaimedDelivery } from '../../src/deliveries/claim.ts'
import { createReordering } from '../../src/lab/reordering.ts'

const delivery = (event: number): ClaimedDelivery =>
  ({ id: event + 100, account: 1, webhook: 7, event } as Partial<ClaimedDelivery> as ClaimedDelivery)

t.test('events that are held at once all follow the next one, each once', async (t) => {
  const released: number[] = []
  const reordering = createReordering(async ({ event }) => { released.push(event) })
  // Both were claimed together, and hit before either was held.
  for (const event of [1, 2]) await reordering.hold(delivery(event))()
  const pass = reordering.passing(delivery(3))
  await pass?.()
  await pass?.()
  t.same(released, [1, 2])
  t.equal(reordering.passing(delivery(4)), undefined)
  await reordering.hold(delivery(4))()
  for (const event of [1, 2, 4]) t.equal(reordering.takeBack(delivery(event)), true, `event ${event}`)
  t.equal(reordering.takeBack(delivery(1)), false)
})
