import { LAST_INSTANT } from '../database/account-clocks.ts'
import { etagOf } from '../database/record.ts'
import type { Command, CommandResult } from '../database/group-commit/command.ts'
import { renewClaim } from '../database/group-commit/idempotency-records.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { ValidationFailed, withProblem } from '../errors.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { offsetAfter, type Advance } from './rules.ts'
import { clockEvents, type AdvancedClock } from './schemas.ts'

export interface ClockMove {
  account: number
  advance: Advance
  conditions: Conditions
  /** The Idempotency-Key of the request. Its record must outlive the advance. */
  idempotencyKey: string | undefined
}

/** Returns the entity tag of a clock. */
export function clockEtag (offsetSeconds: number): string {
  return etagOf(offsetSeconds)
}

/** Moves a clock ahead. What becomes due is not done here, because it can take several steps. */
export const advanceClock: Command<ClockMove, AdvancedClock> = {
  name: 'advanceClock',
  stores: true,
  runsAlone: true,
  locksAccount: true,
  run: move
}

/** The account is locked, so its clock is known and no other write of the account runs. */
async function move (
  tx: Transaction, { account, advance, conditions, idempotencyKey }: ClockMove
): Promise<CommandResult<AdvancedClock>> {
  const before = tx.clockOffset(account) / 1000
  const failed = checkPreconditions(conditions, clockEtag(before))
  if (failed !== undefined) return failed
  const offsetSeconds = offsetAfter(Date.parse(tx.startedAt), before, advance, LAST_INSTANT)
  if (offsetSeconds === 'not later') {
    const error = new ValidationFailed('to must be later than the clock, which never goes back')
    return withProblem(error, '/body/to', 'minimum')
  }
  if (offsetSeconds === 'out of range') return new ValidationFailed('The clock cannot show a time after the year 9999')
  const from = tx.now(account)
  tx.advanceClock(account, offsetSeconds * 1000)
  const now = tx.now(account)
  if (idempotencyKey !== undefined) await renewClaim(tx, account, idempotencyKey)
  const { dialect, execute } = tx
  await execute(`
    UPDATE accounts SET clock_offset_seconds = i.ahead
    FROM ${dialect.jsonRows('i', { account: 'bigint', ahead: 'bigint' })} WHERE accounts.id = i.account`,
  [{ account, ahead: offsetSeconds }])
  return {
    record: { now, offsetSeconds },
    etag: clockEtag(offsetSeconds),
    events: [clockEvents.advanced({ from, to: now })],
    changes: { lab: [account] }
  }
}
