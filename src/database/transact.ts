import { DatabaseUnavailable } from '../errors.ts'
import { classifyError, withDeadline } from './error-classification.ts'
import { COMMIT, ROLLBACK, type OwnStatement, type Run } from './statements.ts'

/**
 * Runs its callback in a transaction. Commits when the callback resolves, unless it has committed, and rolls back when
 * it rejects.
 */
export type Transact = <Result>(work: (transaction: OpenTransaction) => Promise<Result>) => Promise<Result>

/** A connection that no other transaction uses until it is released. */
export interface ReservedConnection {
  run: Run
  /** @param failure why the connection may not answer, or still be in its transaction */
  release: (failure?: Error) => void
}

/**
 * Returns a function that runs transactions, each on a connection that `reserve` returns.
 *
 * @param timeout maximum time of a transaction, in ms; by default there is none
 */
export function createTransact (
  reserve: () => Promise<ReservedConnection>, begin: OwnStatement, timeout?: number
): Transact {
  return async function transact (work) {
    const { run, release } = await reserve()
    const transaction = new OpenTransaction(run, begin)
    try {
      const working = work(transaction)
      const result = await (timeout === undefined ? working : withDeadline(working, timeout))
      await transaction.end()
      release()
      return result
    } catch (error) {
      release(await transaction.rollback())
      // Work that fails after its COMMIT must not be repeated.
      throw transaction.hasCommitted ? new DatabaseUnavailable({ cause: error }) : error
    }
  }
}

/**
 * An open transaction. It runs no statement after its end: the connection would commit each of them separately. After a
 * failed statement it can only be rolled back: PostgreSQL answers the COMMIT of a failed transaction with success,
 * although it rolls back.
 */
class OpenTransaction {
  readonly #runOnConnection: Run
  /** BEGIN, which travels with the first statements. */
  #unsent: OwnStatement[]
  /** False as soon as it commits or rolls back. */
  #isOpen = true
  /** Whether the database has confirmed the COMMIT. */
  hasCommitted = false
  #messagesInFlight = 0
  #failure: Error | undefined

  constructor (run: Run, begin: OwnStatement) {
    this.#runOnConnection = run
    this.#unsent = [begin]
  }

  readonly run: Run = async (statements) => await this.#send(statements)

  /** Runs the last statements and commits, in one round trip. @throws also when the outcome is unknown */
  async commit (statements: readonly OwnStatement[]): Promise<object[][]> {
    const isEmpty = statements.length === 0 && this.#unsent.length > 0
    const sent = this.#send(isEmpty ? [] : [...statements, COMMIT])
    this.#isOpen = false
    const rows = await sent
    this.hasCommitted = true
    return rows.slice(0, statements.length)
  }

  /** Commits, unless it has. @throws the error of a statement, also one that the caller ignored */
  async end (): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#isOpen) await this.commit([])
  }

  /**
   * Rolls back. The callback may still be running: its statements must not reach the next transaction.
   *
   * @returns why the connection may not answer, or still be in the transaction
   */
  async rollback (): Promise<Error | undefined> {
    this.#isOpen = false
    if (this.hasCommitted || this.#unsent.length > 0) return undefined
    if (this.#failure !== undefined && classifyError(this.#failure) === 'unavailable') return this.#failure
    if (this.#messagesInFlight > 0) return new Error('The connection has not answered')
    return await this.#runOnConnection([ROLLBACK]).then(() => undefined, (error: Error) => error)
  }

  async #send (statements: readonly OwnStatement[]): Promise<object[][]> {
    if (!this.#isOpen) throw new DatabaseUnavailable({ cause: new Error('The transaction has ended') })
    if (this.#failure !== undefined) throw this.#failure
    if (statements.length === 0) return []
    const before = this.#unsent
    this.#unsent = []
    this.#messagesInFlight++
    try {
      return (await this.#runOnConnection([...before, ...statements])).slice(before.length)
    } catch (error) {
      const failure = error as Error & { statement?: number }
      if (failure.statement !== undefined) failure.statement -= before.length
      this.#failure ??= failure
      throw failure
    } finally {
      this.#messagesInFlight--
    }
  }
}
