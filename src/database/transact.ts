import { DatabaseUnavailable } from '../errors.ts'
import { classifyError, withDeadline } from './error-classification.ts'
import type { OwnStatement, Run } from './statements.ts'

/**
 * Runs its callback in a transaction. Commits when the callback resolves, unless it has committed, and rolls back when
 * it rejects.
 */
export type Transact = <Result>(work: (transaction: OpenTransaction) => Promise<Result>) => Promise<Result>

/** A connection that is reserved for a transaction until `commit` or `rollback` has returned. */
export interface ReservedConnection {
  run: Run
  /** As `run`, and commits. @throws when the outcome is unknown, or nothing was committed: then `rollback` is called */
  commit: Run
  /** @param isUsable false when the connection may not answer a ROLLBACK: then it is closed */
  rollback: (isUsable: boolean) => Promise<void>
}

/**
 * Returns a function that runs transactions.
 *
 * @param begin reserves a connection, and begins a transaction on it
 * @param timeout maximum time of a transaction, in ms
 */
export function createTransact (begin: () => Promise<ReservedConnection>, timeout: number): Transact {
  return async function transact (work) {
    const transaction = new OpenTransaction(await begin())
    try {
      const result = await withDeadline(work(transaction), timeout)
      await transaction.end()
      return result
    } catch (error) {
      // The callback may still be running. Its statements must not reach another transaction.
      await transaction.rollback().catch(() => {})
      throw error
    }
  }
}

/**
 * An open transaction. It ends once, and runs no statement afterwards: the connection would commit each of them
 * separately. After a failed statement it can only be rolled back: PostgreSQL answers the COMMIT of a failed
 * transaction with success, although it rolls back.
 */
class OpenTransaction {
  readonly #connection: ReservedConnection
  /** False as soon as it commits or rolls back. */
  #isOpen = true
  #hasEnded = false
  #statementsInFlight = 0
  #failure: Error | undefined

  constructor (connection: ReservedConnection) {
    this.#connection = connection
  }

  readonly run: Run = async (statements) =>
    statements.length === 0 ? [] : await this.#send(async () => await this.#connection.run(statements))

  /** Runs the last statements and commits, in one round trip. */
  async commit (statements: readonly OwnStatement[]): Promise<object[][]> {
    if (this.#failure !== undefined) throw this.#failure
    return await this.#send(async () => {
      this.#isOpen = false
      const rows = await this.#connection.commit(statements)
      this.#hasEnded = true
      return rows
    })
  }

  /** Commits, unless it has. @throws the error of a statement, also one that the caller ignored */
  async end (): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#isOpen) await this.commit([])
  }

  /** Does nothing after the end of the transaction. */
  async rollback (): Promise<void> {
    if (this.#hasEnded) return
    this.#isOpen = false
    this.#hasEnded = true
    const isReachable = this.#failure === undefined || classifyError(this.#failure) !== 'unavailable'
    await this.#connection.rollback(isReachable && this.#statementsInFlight === 0)
  }

  async #send (send: () => Promise<object[][]>): Promise<object[][]> {
    if (!this.#isOpen) throw transactionHasEnded()
    this.#statementsInFlight++
    try {
      return await send()
    } catch (error) {
      this.#failure ??= error as Error
      throw error
    } finally {
      this.#statementsInFlight--
    }
  }
}

export function transactionHasEnded (): Error {
  return new DatabaseUnavailable({ cause: new Error('The transaction has ended') })
}
