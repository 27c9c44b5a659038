// Only on SQLite: the pace does not depend on the database.

import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { erasure } from '../../src/accounts/erasure.ts'
import type { Commit } from '../../src/database/group-commit/committer.ts'
import type { Read } from '../../src/database/reads/query.ts'
import { eventually } from '../support/receiver.ts'
import { startSweepAlone } from '../support/sweeps.ts'

t.test('erasing pauses after each step for three times its duration', async (t) => {
  const steps: Array<{ began: number, ended: number }> = []
  let ids = '[7]'
  const read = (async () => ({ ids })) as unknown as Read
  const commit = (async () => {
    const began = performance.now()
    await sleep(20)
    steps.push({ began, ended: performance.now() })
    if (steps.length < 4) return { record: { state: 'erasing', position: {} } }
    ids = '[]'
    return { record: { state: 'erased' } }
  }) as unknown as Commit
  const pass = await startSweepAlone(t, { read, commit }, (app) => app.register(erasure, { REQUEST_TIMEOUT_MS: 1_000 }))
  pass(5_000)
  await eventually(() => steps.length === 4)
  for (const [i, { began }] of steps.slice(1).entries()) {
    const last = steps[i]!
    // A timer may end a millisecond early.
    const least = 3 * (last.ended - last.began) - 2
    t.ok(began - last.ended >= least, `a pause of ${began - last.ended} ms after ${last.ended - last.began} ms`)
  }
})

t.test('an account that cannot be erased keeps no other one from being erased', async (t) => {
  let left = [7, 8, 9]
  const read = (async () => ({ ids: JSON.stringify(left) })) as unknown as Read
  const commit = (async (_command: unknown, { account }: { account: number }) => {
    if (account !== 9) throw new Error('some defect')
    left = [7, 8]
    return { record: { state: 'erased' } }
  }) as unknown as Commit
  const pass = await startSweepAlone(t, { read, commit }, (app) => app.register(erasure, { REQUEST_TIMEOUT_MS: 1_000 }))
  pass(5_000)
  await eventually(() => left.length === 2, 5_000)
  t.same(left, [7, 8])
})
