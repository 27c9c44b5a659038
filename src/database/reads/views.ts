import { DatabaseUnavailable } from '../../errors.ts'
import type { Database } from '../database.ts'
import { QueueLimit } from '../queue-limit.ts'
import { failureOf } from '../error-classification.ts'
import { getOrAdd } from '../get-or-add.ts'
import { Turns } from '../turns.ts'
import type { Call, ReadView } from './query.ts'
import type { RunnerOptions, StatementRunner } from './statement-runner.ts'

/**
 * Returns a function that opens views one at a time, so that what their callers collect is in memory once. Accounts
 * take turns: one caller of each waits among those of all. Each statement of a view is a large read: other work
 * precedes it, and those of other accounts have their turn between two.
 *
 * @returns a function that throws Overloaded if too many callers wait, DatabaseUnavailable if the database does not
 *   respond
 */
export function createViews (
  database: Database, runner: StatementRunner, addLarge: (call: Call) => void, { queueLimit, timeout }: RunnerOptions
): ReadView {
  const turns = new Turns()
  /** The turns within an account, while it has callers. */
  const turnsOf = new Map<number, Turns>()
  /** Counts the callers that have not settled. */
  const limit = new QueueLimit<number>(queueLimit)

  return async (account, use) => {
    limit.enter(account)
    const since = performance.now()
    const endTurnOfAccount = await getOrAdd(turnsOf, account, () => new Turns()).take()
    const endTurn = await turns.take()
    try {
      if (performance.now() - since >= timeout) throw new DatabaseUnavailable()
      return await database.view(async ({ run }) =>
        await use(async (query, input) => await runner.admit(query, input, addLarge, run)))
    } catch (error) {
      throw failureOf(error)
    } finally {
      endTurn()
      endTurnOfAccount()
      limit.leave(account)
      if (!limit.counts.has(account)) turnsOf.delete(account)
    }
  }
}
