import { DatabaseUnavailable } from '../../errors.ts'
import type { Instrumentation } from '../../monitoring/instrumentation.ts'
import type { Database } from '../database.ts'
import { classifyError, withDeadline } from '../error-classification.ts'
import { QueueLimit } from '../queue-limit.ts'
import { queryRows, type OwnStatement } from '../statements.ts'
import type { AnyQuery, Batch, Call } from './query.ts'
import { QueryTexts } from './query-texts.ts'

export interface RunnerOptions {
  /** Maximum number of reads that wait for the database. The service refuses further reads. */
  queueLimit: number
  /** Maximum time that one read waits, in ms. */
  timeout: number
  instrumentation?: Instrumentation | undefined
  /** Charges an account for the time since `began`, in which one of its large reads ran. */
  charge?: (account: number, began: number) => void
}

type Row = Record<string, unknown> & { ord: number }

/** Runs the statements of reads, and limits how many reads wait for them. */
export class StatementRunner {
  readonly #database: Database
  readonly #options: RunnerOptions
  readonly #texts: QueryTexts
  #waiting = 0
  /** Counts the reads that have not settled, without those that are never refused. */
  readonly #limit: QueueLimit<unknown>

  constructor (database: Database, options: RunnerOptions) {
    this.#database = database
    this.#options = options
    this.#texts = new QueryTexts(database.dialect)
    this.#limit = new QueueLimit(options.queueLimit)
    options.instrumentation?.queue('read', () => this.#waiting)
  }

  /** Number of reads that have not settled. */
  get waiting (): number {
    return this.#waiting
  }

  /** Whether `runAtOnce` exists for this database. */
  get canRunAtOnce (): boolean {
    return this.#database.readRow !== undefined
  }

  /** Runs a read for one input in this thread. */
  runAtOnce (query: AnyQuery, input: object): unknown {
    const { instrumentation } = this.#options
    const began = performance.now()
    instrumentation?.batchStarted('read', 0)
    try {
      const { sql, valuesOf } = this.#texts.singleOf(query)
      return this.#database.readRow!(sql, valuesOf(input))
    } catch (error) {
      throw classifyError(error) === 'statement error' ? error : new DatabaseUnavailable({ cause: error })
    } finally {
      instrumentation?.batchFinished('read', 1, performance.now() - began)
    }
  }

  /**
   * Counts a read that `run` will settle.
   *
   * @throws Overloaded if others of its account wait, and the queue, or the account's share of it, is full
   */
  admit ({ isNeverRefused }: AnyQuery, input: object): void {
    if (isNeverRefused !== true) this.#limit.enter(accountOf(input))
    this.#waiting++
  }

  #settled ({ query, input }: Call): void {
    this.#waiting--
    if (query.isNeverRefused !== true) this.#limit.leave(accountOf(input))
  }

  /** Rejects an admitted read that has waited longer than the time-out. @returns whether it has */
  refuseIfLate (call: Call): boolean {
    if (performance.now() - call.since < this.#options.timeout) return false
    this.#settled(call)
    call.reject(new DatabaseUnavailable())
    return true
  }

  /** Runs a statement and settles its calls. @returns how long it took, in ms */
  async run (batch: Batch): Promise<number> {
    return await this.#settle(batch, async () => await this.#select(batch))
  }

  async #settle ({ calls }: Batch, select: () => Promise<object[]>): Promise<number> {
    const { instrumentation, timeout } = this.#options
    const began = performance.now()
    const waited = began - calls[0]!.since
    instrumentation?.batchStarted('read', waited)
    try {
      const rows = await withDeadline(select(), timeout - waited)
      for (const row of rows as Row[]) calls[row.ord - 1]!.resolve(row)
      // Has no effect on calls that already have their row.
      for (const { resolve } of calls) resolve(undefined)
    } catch (error) {
      const reason = classifyError(error) === 'statement error' ? error : new DatabaseUnavailable({ cause: error })
      for (const { reject } of calls) reject(reason)
    } finally {
      for (const call of calls) this.#settled(call)
      instrumentation?.batchFinished('read', calls.length, performance.now() - began)
    }
    return performance.now() - began
  }

  async #select (batch: Batch): Promise<object[]> {
    const { sql, values } = this.#statementOf(batch)
    return await queryRows(batch.calls[0]!.view ?? this.#database.read, sql, values)
  }

  #statementOf ({ query, calls }: Batch): OwnStatement {
    const [{ input }] = calls as [Call]
    // Without the JSON, PostgreSQL takes a sixth less time for one input.
    if (calls.length === 1 && query.maxRowBytes === undefined) {
      const { sql, valuesOf } = this.#texts.singleOf(query)
      return { sql, values: valuesOf(input) }
    }
    return { sql: this.#texts.textOf(query), values: [JSON.stringify(calls.map(({ input }) => input))] }
  }
}

function accountOf (input: object): unknown {
  return (input as { account?: unknown }).account
}
