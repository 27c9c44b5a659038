import type { Command } from '../database/group-commit/command.ts'
import { all, forUpdate, type Write } from '../database/unit-of-work/write.ts'
import { accountLimits, apiKeys } from '../generated/tables.ts'
import { requirePreconditions, type Conditions } from '../http/conditional-requests.ts'
import { LimitsNotFound } from './errors.ts'
import { limitsEtag, limitsOf, type LimitsRow } from './queries.ts'
import { countRequest, currentWindows, type Use, type Window } from './rules.ts'
import type { Limits, NewLimits } from './schemas.ts'

/** Sets limits in place of those before, and counts from 0. */
export const putLimits: Write<{ account: number, limits: NewLimits, conditions: Conditions }, Limits> = {
  name: 'putLimits',
  // An account without limits has no row of theirs to lock, but it has API keys.
  needs: ({ account }) => [all(apiKeys), forUpdate(accountLimits, account)],
  decide ({ account, limits: { requests, windowSeconds, ...choices }, conditions }, rows) {
    const { per = 'account', fields = 'ietf', retryAfter = 'seconds' } = choices
    const before = rows.get(accountLimits, account)
    requirePreconditions(conditions, before && limitsEtag(limitsOf(before as LimitsRow)))
    const limits: Limits = { requests, windowSeconds, per, fields, retryAfter, refused: 0, early: 0 }
    const row = { accountId: account, ...limits, windows: '[]' }
    if (before === undefined) rows.insert(accountLimits, row)
    else rows.update(accountLimits, before, row)
    return { record: limits, etag: limitsEtag(limits), changes: { lab: [account] } }
  }
}

export const deleteLimits: Write<{ account: number, conditions: Conditions }, undefined> = {
  name: 'deleteLimits',
  needs: ({ account }) => [forUpdate(accountLimits, account)],
  decide ({ account, conditions }, rows) {
    const before = rows.get(accountLimits, account)
    if (before === undefined) throw new LimitsNotFound()
    requirePreconditions(conditions, limitsEtag(limitsOf(before as LimitsRow)))
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
    const limits = limitsOf(row as LimitsRow)
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
