import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { startJob } from '../database/job.ts'
import { isApiError } from '../errors.ts'
import { deleteAccount } from './commands.ts'
import { findAccountsBy } from './queries.ts'

const INTERVAL_MS = 5_000

/** Limits the accounts that one transaction deletes. Thousands that were opened together expire together. */
const ACCOUNTS_PER_STEP = 10

export const findExpiredAccounts = findAccountsBy('expires_at', ACCOUNTS_PER_STEP)

/** Deletes accounts that have expired, in every process. Their API keys have ended before, at the time itself. */
export const expiry = fp(async function expiry (app: FastifyInstance) {
  startJob(app, {
    every: INTERVAL_MS,
    async step () {
      const accounts = await findExpiredAccounts(app.read, Date.now())
      return (await Promise.all(accounts.map(deleteOne))).includes(true)
    },
    failure: 'cannot delete expired accounts'
  })

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
