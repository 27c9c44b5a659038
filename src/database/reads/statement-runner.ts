import { DatabaseUnavailable } from '../../errors.ts'
import { getOrAdd } from '../get-or-add.ts'
import type { Instrumentation } from '../../monitoring/instrumentation.ts'
import type { Database } from '../database.ts'
import { failureOf, withDeadline } from '../error-classification.ts'
import { QueueLimit } from '../queue-limit.ts'
import { queryRows, type OwnStatement, type Run } from '../statements.ts'
import type { AnyQuery, Call, Query } from './query.ts'

export interface RunnerOptions {
  /** Maximum number of reads that wait for the database. The service refuses further reads. */
  queueLimit: number
  /** Maximum time that one read waits, in ms. */
  timeout: number
  instrumentation?: Instrumentation | undefined
  /** Charges accounts for the time since `began`, in which one large read of each ran. */
  charge?: (accounts: readonly number[], began: number) => void
}

type Row = Record<string, unknown> & { ord: number }

/** Runs the statements of reads, and limits how many reads wait for them. */
export class StatementRunner {
  readonly #database: Database
  readonly #options: RunnerOptions
  /** The texts of queries, whose only parameter is a JSON array of inputs. */
  readonly #texts = new WeakMap<AnyQuery, string>()
  /** Number of reads that have not settled. */
  #waiting = 0
  /** Counts those of accounts. */
  readonly #limit: QueueLimit<number>

  constructor (database: Database, options: RunnerOptions) {
    this.#database = database
    this.#options = options
    this.#limit = new QueueLimit(options.queueLimit)
    options.instrumentation?.queue('read', () => this.#waiting)
  }

  /** Runs a read for one input in this thread, where the database can. */
  runAtOnce (query: AnyQuery, input: object): unknown {
    const { instrumentation } = this.#options
    const began = performance.now()
    instrumentation?.batchStarted('read', 0)
    try {
      const { sql, values } = this.#statementOf(query, [input])
      return this.#database.readRow!(sql, values)
    } catch (error) {
      throw failureOf(error)
    } finally {
      instrumentation?.batchFinished('read', 1, performance.now() - began)
    }
  }

  /**
   * Counts a read, and passes it to `start`, after which `run` or `refuseIfLate` settles it.
   *
   * @throws Overloaded if others of its account wait, and the queue, or the account's share of it, is full
   */
  admit<Input extends object, Result> (
    query: Query<Input, Result>, input: Input, start: (call: Call) => void, view?: Run
  ): Promise<Result | undefined> {
    const { account } = input as { account?: number }
    if (account !== undefined) this.#limit.enter(account)
    this.#waiting++
    return new Promise<Result | undefined>((resolve, reject) => {
      start({ query, input, account, since: performance.now(), resolve, reject, view } as Call)
    })
  }

  #settled ({ account }: Call): void {
    this.#waiting--
    if (account !== undefined) this.#limit.leave(account)
  }

  /** Rejects an admitted read that has waited longer than the time-out. @returns whether it has */
  refuseIfLate (call: Call): boolean {
    if (performance.now() - call.since < this.#options.timeout) return false
    this.#settled(call)
    call.reject(new DatabaseUnavailable())
    return true
  }

  /** Runs the calls of one query, at least one, in a statement, and settles them. @returns how long it took, in ms */
  async run (calls: readonly Call[]): Promise<number> {
    const { instrumentation, timeout } = this.#options
    const { query, since, view } = calls[0]!
    const began = performance.now()
    const waited = began - since
    instrumentation?.batchStarted('read', waited)
    try {
      const { sql, values } = this.#statementOf(query, calls.map(({ input }) => input))
      const rows = await withDeadline(queryRows<Row>(view ?? this.#database.read, sql, values), timeout - waited)
      for (const row of rows) calls[row.ord - 1]!.resolve(row)
      // Has no effect on calls that already have their row.
      for (const { resolve } of calls) resolve(undefined)
    } catch (error) {
      const reason = failureOf(error)
      for (const { reject } of calls) reject(reason)
    } finally {
      for (const call of calls) this.#settled(call)
      instrumentation?.batchFinished('read', calls.length, performance.now() - began)
    }
    return performance.now() - began
  }

  #statementOf (query: AnyQuery, inputs: readonly object[]): OwnStatement {
    const sql = getOrAdd(this.#texts, query, () => query.sql(this.#database.dialect))
    return { sql, values: [JSON.stringify(inputs)] }
  }
}
