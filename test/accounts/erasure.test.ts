// Only on SQLite: no database is asked.

import t from 'tap'
import { erasure } from '../../src/accounts/erasure.ts'
import type { Commit } from '../../src/database/group-commit/committer.ts'
import type { Read } from '../../src/database/reads/query.ts'
import { eventually } from '../support/receiver.ts'
import { startJobAlone } from '../support/jobs.ts'

t.test('an account that cannot be erased keeps no other one from being erased', async (t) => {
  let left = [7, 8, 9]
  const read = (async () => ({ ids: JSON.stringify(left) })) as unknown as Read
  const commit = (async (_command: unknown, { account }: { account: number }) => {
    if (account !== 9) throw new Error('some defect')
    left = [7, 8]
    return { record: { state: 'erased' } }
  }) as unknown as Commit
  const pass = await startJobAlone(t, { read, commit }, (app) => app.register(erasure, { REQUEST_TIMEOUT_MS: 1_000 }))
  pass(5_000)
  await eventually(() => left.length === 2, 5_000)
  t.same(left, [7, 8])
})
