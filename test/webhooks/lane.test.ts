import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createCaller } from '../../src/webhooks/call.ts'
import { createLane } from '../../src/webhooks/lane.ts'
import { settleDeliveries } from '../../src/webhooks/settle.ts'
import { backlog } from '../support/delivery.ts'
import { eventually } from '../support/receiver.ts'

t.test('a lane ends when nothing is left, also after its webhook said that it is gone', async (t) => {
  for (const status of [204, 410]) {
    const { service: { app }, receiver, path } = await backlog(t, 3)
    receiver.respond = (response) => { response.writeHead(status).end() }
    const caller = createCaller({ allowPrivate: true })
    t.teardown(caller.close)
    const stop = new AbortController()
    setMaxListeners(0, stop.signal)
    let ends = 0
    const lane = createLane(Number(path.split('/').at(-1)), {
      worker: 'a',
      commit: app.commit,
      caller,
      log: app.log,
      stopped: stop.signal,
      calls: 0,
      write: async (settlement) => { await app.commit(settleDeliveries, settlement, { account: null }) },
      track () {},
      lookBy () {}
    }, () => { ends++ })
    lane.offer()
    await receiver.until(1)
    await eventually(async () => ends > 0, 5_000, () => `the lane of a webhook that answers ${status} stays`)
    await sleep(1_500)
    t.equal(ends, 1, `after ${status}, once`)
  }
})
