import { DatabaseUnavailable } from '../../errors.ts'
import type { Database } from '../database.ts'
import { QueueLimit } from '../queue-limit.ts'
import { RoundRobinQueue } from '../round-robin-queue.ts'
import { failureOf } from '../error-classification.ts'
import type { Run } from '../statements.ts'
import type { LargeReads } from './large-reads.ts'
import type { Call, Query, Read } from './query.ts'
import type { RunnerOptions, StatementRunner } from './statement-runner.ts'

/** A caller that waits for its view. */
interface Waiter {
  account: number
  since: number
  begin: () => void
  reject: (error: Error) => void
}

/**
 * Opens views one at a time, so that what their callers collect is in memory once. Accounts take turns. Each statement
 * of a view is a large read: other work precedes it, and those of other accounts have their turn between two.
 */
export class Views {
  readonly #database: Database
  readonly #runner: StatementRunner
  readonly #large: LargeReads
  readonly #options: RunnerOptions
  readonly #waiting = new RoundRobinQueue<number, Waiter>()
  /** Counts the callers that have not settled. */
  readonly #limit: QueueLimit<number>
  #isOpen = false

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
    try {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.add(account, { account, since: performance.now(), begin: resolve, reject })
        if (!this.#isOpen) this.#beginNext()
      })
      return await this.#use(use)
    } finally {
      this.#limit.leave(account)
    }
  }

  #beginNext (): void {
    for (;;) {
      const next = this.#waiting.takeIf(() => true)
      this.#isOpen = next !== undefined
      if (next === undefined) return
      if (performance.now() - next.since < this.#options.timeout) return next.begin()
      next.reject(new DatabaseUnavailable())
    }
  }

  async #use<Result> (use: (read: Read) => Promise<Result>): Promise<Result> {
    try {
      return await this.#database.view(async ({ run }) => await use(this.#readIn(run)))
    } catch (error) {
      throw failureOf(error)
    } finally {
      this.#beginNext()
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
