// Only on SQLite: needs no database.

import t from 'tap'
import type { DatabaseName } from '../../../src/database/dialect.ts'
import { nextStep, type GroupState, type Step } from '../../../src/database/group-commit/group-start.ts'

/** One write has arrived at 1,000 ms, a while after the last group. No group is in flight. */
const LONE: GroupState = {
  now: 1_000,
  queued: 1,
  oldestSince: 1_000,
  unanswered: 0,
  lastSize: 1,
  answeredAt: 900,
  inFlight: 0,
  sharedInFlight: 0,
  writers: 3,
  ticks: 1
}

const CROWD: Partial<GroupState> = { queued: 33, unanswered: 31 }
const BUSY: Partial<GroupState> = { inFlight: 1, sharedInFlight: 1 }

const gather: Step = { do: 'gather' }
const wait = (ms: number): Step => ({ do: 'wait', ms })
const start = (size = 256): Step => ({ do: 'start', size })

t.test('when a group starts', async (t) => {
  const rows: Array<[what: string, state: Partial<GroupState>, step: Step | Record<DatabaseName, Step>]> = [
    ['nothing waits', { queued: 0 }, wait(Infinity)],
    ['a lone write', {}, start()],
    ['two writes of one tick', { queued: 2 }, gather],
    ['the last group had several', { lastSize: 2 }, gather],
    ['several have gathered for 0.9 ms', { queued: 2, now: 1_000.9 }, gather],
    ['several have gathered for 1 ms', { queued: 2, now: 1_001 }, { sqlite: gather, postgresql: start() }],
    ['several have gathered for 3 ms', { queued: 2, now: 1_003 }, { sqlite: gather, postgresql: start() }],
    ['several have gathered for 4 ms', { queued: 2, now: 1_004 }, start()],
    ['the last group was just answered', { queued: 2, now: 1_006, answeredAt: 1_005.5 }, gather],
    ['several have gathered for 12 ticks', { queued: 2, ticks: 12 }, start()],
    ['a full group', { queued: 256 }, { sqlite: start(), postgresql: start(128) }],
    ['more than two groups', { queued: 600 }, { sqlite: start(), postgresql: start() }],
    ['a crowd whose writes all wait', { queued: 33 }, { sqlite: gather, postgresql: start(17) }],
    ['a crowd of which half is not answered', CROWD, { sqlite: gather, postgresql: start(32) }],
    ['no crowd', { queued: 17, unanswered: 15 }, gather],
    ['no crowd that has gathered', { queued: 17, unanswered: 15, ticks: 12 }, start()],
    ['a crowd that has waited long', { ...CROWD, ticks: 12, now: 1_020 }, start()],
    ['a group is in flight', { ...BUSY, now: 1_005 }, wait(15)],
    ['a group takes long', { ...BUSY, now: 1_020 }, start()],
    ['a crowd behind a group in flight', { ...CROWD, ...BUSY, ticks: 12 }, wait(20)],
    ['a command that runs alone is in flight', { inFlight: 1 }, start()],
    ['all connections have groups', { inFlight: 3, sharedInFlight: 2, now: 1_020 }, wait(Infinity)],
    ['the only connection has a group', { ...BUSY, writers: 1, now: 1_020 }, wait(Infinity)]
  ]
  for (const [what, state, expected] of rows) {
    for (const database of ['sqlite', 'postgresql'] as const) {
      const step = 'do' in expected ? expected : expected[database]
      t.same(nextStep(database, { ...LONE, ...state }), step, `${what}: ${database}`)
    }
  }
})
