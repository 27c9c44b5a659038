import { DatabaseUnavailable } from '../../errors.ts'
import type { Database } from '../database.ts'
import { QueueLimit } from '../queue-limit.ts'
import { failureOf } from '../error-classification.ts'
import { getOrAdd } from '../get-or-add.ts'
import type { Run } from '../statements.ts'
import { Turns } from '../turns.ts'
import type { LargeReads } from './large-reads.ts'
import type { Call, Query, Read } from './query.ts'
import type { RunnerOptions, StatementRunner } from './statement-runner.ts'

/**
 * Opens views one at a time, so that what their callers collect is in memory once. Accounts take turns: one caller of
 * each waits among those of all. Each statement of a view is a large read: other work precedes it, and those of other
 * accounts have their turn between two.
 */
export class Views {
  readonly #database: Database
  readonly #runner: StatementRunner
  readonly #large: LargeReads
  readonly #options: RunnerOptions
  readonly #turns = new Turns()
  /** The turns within an account, while it has callers. */
  readonly #turnsOf = new Map<number, Turns>()
  /** Counts the callers that have not settled. */
  readonly #limit: QueueLimit<number>

  constructor (database: Database, runner: StatementRunner, large: LargeReads, options: RunnerOptions) {
    this.#database = database
    this.#runner = runner
    this.#large = large
    this.#options = options
    this.#limit = new QueueLimit(options.queueLimit)
  }

  /** @throws Overloaded if too many callers wait, DatabaseUnavailable if the database does not respond */
  async run<Result> (account: number, use: (read: Read) => Promise<Result>): Promise<Result> {
    this.#limit.enter(account)
    const since = performance.now()
    const endTurnOfAccount = await getOrAdd(this.#turnsOf, account, () => new Turns()).take()
    const endTurn = await this.#turns.take()
    try {
      if (performance.now() - since >= this.#options.timeout) throw new DatabaseUnavailable()
      return await this.#database.view(async ({ run }) => await use(this.#readIn(run)))
    } catch (error) {
      throw failureOf(error)
    } finally {
      endTurn()
      endTurnOfAccount()
      this.#limit.leave(account)
      if (!this.#limit.counts.has(account)) this.#turnsOf.delete(account)
    }
  }

  #readIn (view: Run): Read {
    return async <Input extends object, Row>(query: Query<Input, Row>, input: Input) => {
      this.#runner.admit(query, input)
      return await new Promise<Row | undefined>((resolve, reject) => {
        const call = { query, input, since: performance.now(), resolve, reject, view }
        this.#large.add(call as Call)
      })
    }
  }
}
