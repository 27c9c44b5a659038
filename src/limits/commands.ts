import type { Command, CommandResult } from '../database/group-commit/command.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { markChanged } from '../lab/state-commands.ts'
import { LimitsNotFound } from './errors.ts'
import { LIMIT_COLUMNS, limitsEtag, limitsOf, type LimitsRow } from './queries.ts'
import { countRequest, currentWindows, type Use, type Window } from './rules.ts'
import type { Limits, NewLimits } from './schemas.ts'

type StoredLimits = LimitsRow & { account: number, windows: string }

/** Locks the limits of accounts, in the order of their ids. */
async function lockLimits (
  { dialect, query }: Transaction, accounts: Array<{ account: number }>
): Promise<Map<number, StoredLimits>> {
  const rows = await query<StoredLimits>(`
    SELECT l.account_id AS account, ${LIMIT_COLUMNS}, l.windows FROM account_limits l
    WHERE l.account_id IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
    ORDER BY l.account_id ${dialect.forUpdate}`, distinct(accounts.map(({ account }) => ({ account }))))
  return new Map(rows.map((row) => [row.account, row]))
}

/** Sets limits in place of those before, and counts from 0. The account is locked, because it may have none to lock. */
export const putLimits: Command<{ account: number, limits: NewLimits, conditions: Conditions }, Limits> = {
  name: 'putLimits',
  runsAlone: 'with its kind',
  locksAccount: true,
  run: async (tx, input): Promise<CommandResult<Limits>> => {
    const { account, limits: { requests, windowSeconds, ...choices }, conditions } = input
    const { per = 'account', fields = 'ietf', retryAfter = 'seconds' } = choices
    const before = (await lockLimits(tx, [{ account }])).get(account)
    const failed = checkPreconditions(conditions, before && limitsEtag(limitsOf(before)))
    if (failed !== undefined) return failed
    const { dialect, execute } = tx
    const columns = {
      account: 'bigint', requests: 'bigint', seconds: 'bigint', per: 'text', fields: 'text', retry: 'text'
    } as const
    await execute(`
      INSERT INTO account_limits (account_id, requests, window_seconds, per, fields, retry_after)
      SELECT i.account, i.requests, i.seconds, i.per, i.fields, i.retry FROM ${dialect.jsonRows('i', columns)}
      WHERE true
      ON CONFLICT (account_id) DO UPDATE SET
        requests = excluded.requests, window_seconds = excluded.window_seconds, per = excluded.per,
        fields = excluded.fields, retry_after = excluded.retry_after, refused = 0, early = 0, windows = '[]'`,
    [{ account, requests, seconds: windowSeconds, per, fields, retry: retryAfter }])
    await markChanged(tx, [{ account }])
    const limits = { requests, windowSeconds, per, fields, retryAfter, refused: 0, early: 0 }
    return { record: limits, etag: limitsEtag(limits), changes: { lab: [account] } }
  }
}

export const deleteLimits: Command<{ account: number, conditions: Conditions }, undefined> = {
  name: 'deleteLimits',
  runsAlone: 'with its kind',
  locksAccount: true,
  run: async (tx, { account, conditions }) => {
    const before = (await lockLimits(tx, [{ account }])).get(account)
    if (before === undefined) return new LimitsNotFound()
    const failed = checkPreconditions(conditions, limitsEtag(limitsOf(before)))
    if (failed !== undefined) return failed
    const { dialect, execute } = tx
    await execute(`
      DELETE FROM account_limits
      WHERE account_id IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})`, [{ account }])
    await markChanged(tx, [{ account }])
    return { record: undefined, changes: { lab: [account] } }
  }
}

/** A request of an account that may have limits. */
export interface CountInput {
  account: number
  key: number
  /** When it came, in ms of real time. */
  arrivedAt: number
}

/** What a counted request is told, with the limits that it was counted for. */
export interface Counted { limits: Limits, use: Use }

/**
 * Counts requests within the limits of their accounts, which are locked: exactly as many are accepted as a window
 * allows, whatever the number of processes. The record is `null` for an account without limits.
 */
export const countRequests: Command<CountInput, Counted | null> = {
  name: 'countRequests',
  runsAlone: 'with its kind',
  async runAll (tx, inputs) {
    const rows = await lockLimits(tx, inputs)
    const counted = new Map([...rows].map(([account, row]) => [account, {
      limits: limitsOf(row), windows: JSON.parse(row.windows) as Window[], now: Date.parse(tx.now(account))
    }]))
    const results = inputs.map(({ account, key, arrivedAt }): CommandResult<Counted | null> => {
      const own = counted.get(account)
      if (own === undefined) return { record: null }
      const { limits, windows, now } = own
      const offset = tx.clockOffset(account)
      const client = limits.per === 'key' ? key : 0
      const use = countRequest(limits, windows, { client, arrivedAt: arrivedAt + offset, now, offset })
      if (use.isRefused) limits.refused++
      if (use.isEarly) limits.early++
      return { record: { limits, use } }
    })
    const { dialect, execute } = tx
    await execute(`
      UPDATE account_limits SET refused = i.refused, early = i.early, windows = i.windows
      FROM ${dialect.jsonRows('i', { account: 'bigint', refused: 'bigint', early: 'bigint', windows: 'text' })}
      WHERE account_limits.account_id = i.account`,
    [...counted].map(([account, { limits, windows, now }]) => ({
      account,
      refused: limits.refused,
      early: limits.early,
      windows: JSON.stringify(currentWindows(limits, windows, now))
    })))
    return results
  }
}
