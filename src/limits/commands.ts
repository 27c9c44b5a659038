import type { Command } from '../database/group-commit/command.ts'
import { recordOf } from '../database/record.ts'
import { all, forUpdate, type Write } from '../database/unit-of-work/write.ts'
import { accountLimits, apiKeys } from '../generated/tables.ts'
import { requirePreconditions, type Conditions } from '../http/conditional-requests.ts'
import { LimitsNotFound } from './errors.ts'
import { limitsEtag } from './queries.ts'
import { countRequest, currentWindows, type Use, type Window } from './rules.ts'
import { LimitsSchema, type Limits, type NewLimits } from './schemas.ts'

const DEFAULTS: Partial<NewLimits> = { per: 'account', fields: 'ietf', retryAfter: 'seconds' }

/** Sets limits in place of those before, and counts from 0. */
export const putLimits: Write<{ account: number, limits: NewLimits, conditions: Conditions }, Limits> = {
  name: 'putLimits',
  // An account without limits has no row of theirs to lock, but it has API keys.
  needs: ({ account }) => [all(apiKeys), forUpdate(accountLimits, account)],
  decide ({ account, limits, conditions }, rows) {
    const before = rows.get(accountLimits, account)
    requirePreconditions(conditions, before && limitsEtag(recordOf(LimitsSchema, before)))
    if (before !== undefined) rows.delete(accountLimits, before)
    const row = rows.insert(accountLimits, { ...DEFAULTS, ...limits, accountId: account })
    const record = recordOf(LimitsSchema, row)
    return { record, etag: limitsEtag(record), changes: { lab: [account] } }
  }
}

export const deleteLimits: Write<{ account: number, conditions: Conditions }, undefined> = {
  name: 'deleteLimits',
  needs: ({ account }) => [forUpdate(accountLimits, account)],
  decide ({ account, conditions }, rows) {
    const before = rows.get(accountLimits, account)
    if (before === undefined) throw new LimitsNotFound()
    requirePreconditions(conditions, limitsEtag(recordOf(LimitsSchema, before)))
    rows.delete(accountLimits, before)
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
 * allows, whatever the number of processes. The record is `null` for an account without limits. As a `Write`, it would
 * make the writes of other accounts wait while another process counts requests of the same account.
 */
export const countRequests: Command<CountInput, Counted | null> = {
  name: 'countRequests',
  needs: ({ account }) => ({ account, needs: [forUpdate(accountLimits, account)] }),
  async run (tx, { account, key, arrivedAt }) {
    const rows = tx.rows(account)
    const row = rows.get(accountLimits, account)
    if (row === undefined) return { record: null }
    const limits = recordOf(LimitsSchema, row)
    const windows = JSON.parse(row.windows) as Window[]
    const offset = tx.clockOffset(account)
    // A window ends also where the clock stops.
    const now = Date.parse(tx.startedAt) + offset
    const client = limits.per === 'key' ? key : 0
    const use = countRequest(limits, windows, { client, arrivedAt: arrivedAt + offset, now, offset })
    if (use.isRefused) limits.refused++
    if (use.isEarly) limits.early++
    const { refused, early } = limits
    rows.amend(accountLimits, row, {
      refused, early, windows: JSON.stringify(currentWindows(limits, windows, now))
    })
    return { record: { limits, use } }
  }
}
