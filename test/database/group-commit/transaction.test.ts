// Only on SQLite: calls a function that uses no database.

import t from 'tap'
import { AccountClocks } from '../../../src/database/account-clocks.ts'
import { createTimes } from '../../../src/database/group-commit/transaction.ts'

t.test('a clock that moves while a transaction runs does not change its times', (t) => {
  const clocks = new AccountClocks()
  const { now } = createTimes(clocks, new Map())
  const before = now(1)
  // Another process has moved the clock, and this one learns of it before the transaction reads the account's row.
  clocks.advance(1, 60_000)
  t.equal(now(1), before)
  t.end()
})
