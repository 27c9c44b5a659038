import { DriverAdapterError, type SqlQuery, type Transaction } from '@prisma/driver-adapter-utils'
import { classifyError } from './error-classification.ts'
import type { Connection, OwnStatement, RunTogether } from './statements.ts'

/** Ends a transaction on its connection, and gives the connection back. */
export interface TransactionEnd {
  /**
   * Commits, after some last statements where the connection has `runTogether`, and returns their rows.
   *
   * @throws when the outcome is unknown, or the transaction failed: then `rollback` is called
   */
  commit: (last: readonly OwnStatement[]) => Promise<object[][]>
  /** @param isUsable false when the connection may not answer a ROLLBACK: then it is closed */
  rollback: (isUsable: boolean) => Promise<void>
}

/**
 * An open transaction. It ends once, and runs no statement afterwards: the connection would commit each of them
 * separately. After a failed statement it can only be rolled back: PostgreSQL answers the COMMIT of a failed
 * transaction with success, although it rolls back.
 */
export class OpenTransaction implements Transaction {
  readonly provider
  readonly adapterName
  /** Prisma Client sends no COMMIT or ROLLBACK of its own. It calls `commit` or `rollback`. */
  readonly options = { usePhantomQuery: true }
  readonly #connection: Connection
  readonly #end: TransactionEnd
  /** No statement runs while the transaction commits: the connection would commit it separately. */
  #state: 'open' | 'committing' | 'committed' | 'rolled back' = 'open'
  #statementsInFlight = 0
  #failure: Error | undefined

  constructor (connection: Connection, end: TransactionEnd) {
    this.provider = connection.provider
    this.adapterName = connection.adapterName
    this.#connection = connection
    this.#end = end
    const { runOwn, runTogether } = connection
    this.runOwn = runOwn && ((sql, values) => this.#runNow(() => runOwn(sql, values)))
    this.runTogether = runTogether && (async (statements) => await this.#run(async () => await runTogether(statements)))
    this.runAndCommit = runTogether && (async (statements) => await this.#commit(statements))
  }

  readonly runOwn: Connection['runOwn']
  readonly runTogether: RunTogether | undefined
  readonly runAndCommit: RunTogether | undefined

  readonly queryRaw: Transaction['queryRaw'] = async (query: SqlQuery) =>
    await this.#run(async () => await this.#connection.queryRaw(query))

  readonly executeRaw: Transaction['executeRaw'] = async (query: SqlQuery) =>
    await this.#run(async () => await this.#connection.executeRaw(query))

  /** Does nothing after `runAndCommit`. */
  readonly commit = async (): Promise<void> => {
    if (this.#state === 'committed') return
    if (this.#failure !== undefined) {
      await this.rollback()
      throw this.#failure
    }
    await this.#commit([])
  }

  readonly rollback = async (): Promise<void> => {
    if (this.#state === 'committed' || this.#state === 'rolled back') return
    this.#state = 'rolled back'
    const isReachable = this.#failure === undefined || classifyError(this.#failure) !== 'unavailable'
    await this.#end.rollback(isReachable && this.#statementsInFlight === 0)
  }

  /** Makes `commit` roll back and throw an error. */
  fail (error: Error): void {
    this.#failure ??= error
  }

  async #commit (last: readonly OwnStatement[]): Promise<object[][]> {
    if (this.#failure !== undefined) throw this.#failure
    try {
      const rows = await this.#run(async () => {
        this.#state = 'committing'
        return await this.#end.commit(last)
      })
      this.#state = 'committed'
      return rows
    } catch (error) {
      await this.rollback()
      throw error
    }
  }

  /** Runs a statement of a connection in this thread: it is never in flight when the transaction ends. */
  #runNow<Result> (statement: () => Result): Result {
    if (this.#state !== 'open') throw transactionHasEnded()
    try {
      return statement()
    } catch (error) {
      this.fail(error as Error)
      throw error
    }
  }

  async #run<Result> (statement: () => Promise<Result>): Promise<Result> {
    if (this.#state !== 'open') throw transactionHasEnded()
    this.#statementsInFlight++
    try {
      return await statement()
    } catch (error) {
      this.fail(error as Error)
      throw error
    } finally {
      this.#statementsInFlight--
    }
  }
}

export function transactionHasEnded (): DriverAdapterError {
  return new DriverAdapterError({ kind: 'TransactionAlreadyClosed', cause: 'The transaction has ended' })
}
