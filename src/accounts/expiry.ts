import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { startSweep } from '../database/sweep.ts'
import { isApiError } from '../errors.ts'
import { deleteAccount } from './commands.ts'
import { pauseAfterStep } from './erasure.ts'
import { findAccountsBy } from './queries.ts'

const INTERVAL_MS = 5_000

/** Limits the accounts that one transaction deletes. Thousands that were opened together expire together. */
const ACCOUNTS_PER_STEP = 10

export const findExpiredAccounts = findAccountsBy('expires_at', ACCOUNTS_PER_STEP)

/** Deletes accounts that have expired, in every process. Their API keys have ended before, at the time itself. */
export const expiry = fp(async function expiry (app: FastifyInstance) {
  startSweep(app, deleteExpired, { intervalMs: INTERVAL_MS, failure: 'cannot delete expired accounts' })

  async function deleteExpired (stopped: AbortSignal): Promise<void> {
    let deleted: boolean
    do {
      const began = performance.now()
      const accounts = await findExpiredAccounts(app.read, Date.now())
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
