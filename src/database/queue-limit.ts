import { Overloaded } from '../errors.ts'

/** The part of a queue that one account may fill. */
const ACCOUNT_SHARE = 1 / 4

/**
 * Decides whether a further request of an account may wait. One with nothing waiting always may.
 *
 * @param limit requests that may wait, of all accounts
 * @param waiting requests that wait, of all accounts and of this one; what belongs to no account may fill the queue
 * @throws Overloaded if it may not
 */
export function checkQueueLimit (limit: number, waiting: { all: number, ofAccount: number | undefined }): void {
  const { all, ofAccount } = waiting
  if (ofAccount === 0) return
  if (all >= limit || (ofAccount ?? 0) >= Math.max(1, Math.floor(limit * ACCOUNT_SHARE))) throw new Overloaded()
}
