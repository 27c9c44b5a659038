import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Query, Read } from '../database/reads/query.ts'
import { startSweep } from '../database/sweep.ts'
import { isApiError } from '../errors.ts'
import { deleteAccount } from './commands.ts'
import { pauseAfterStep } from './erasure.ts'

const INTERVAL_MS = 5_000

/** Limits the accounts that one transaction deletes. Thousands that were opened together expire together. */
const ACCOUNTS_PER_STEP = 10

const expiredAccounts: Query<{ now: string }, { accounts: string }> = {
  isNeverRefused: true,
  sql: (dialect) => `
    SELECT i.ord, (
      SELECT '[' || coalesce(${dialect.join('CAST(x.id AS text)', 'x.expires_at')}, '') || ']' FROM (
        SELECT a.id, a.expires_at FROM accounts a WHERE a.expires_at <= ${dialect.toTime('i.now')}
        ORDER BY a.expires_at LIMIT ${ACCOUNTS_PER_STEP}) AS x
    ) AS accounts
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', now: 'text' })}`
}

/** Returns accounts that have expired, those that did so first. */
export async function findExpiredAccounts (read: Read): Promise<number[]> {
  const row = await read(expiredAccounts, { now: new Date().toISOString() })
  return JSON.parse(row!.accounts) as number[]
}

/** Deletes accounts that have expired, in every process. Their API keys have ended before, at the time itself. */
export const expiry = fp(async function expiry (app: FastifyInstance) {
  startSweep(app, deleteExpired, { intervalMs: INTERVAL_MS, failure: 'cannot delete expired accounts' })

  async function deleteExpired (stopped: AbortSignal): Promise<void> {
    let deleted: boolean
    do {
      const began = performance.now()
      const accounts = await findExpiredAccounts(app.read)
      deleted = (await Promise.all(accounts.map(deleteOne))).includes(true)
      if (deleted) await pauseAfterStep(began)
    } while (deleted && !stopped.aborted)
  }

  /** @returns false if another process has deleted it */
  async function deleteOne (account: number): Promise<boolean> {
    try {
      await app.commit(deleteAccount, { account, conditions: {} }, { account })
      return true
    } catch (error) {
      if (isApiError(error)) return false
      throw error
    }
  }
}, { name: 'expiry', dependencies: ['database'] })
