import { DatabaseUnavailable } from '../errors.ts'
import { classifyError, withDeadline } from './error-classification.ts'
import { COMMIT, type OwnStatement, type Run } from './statements.ts'

/**
 * Runs its callback in a transaction. Commits when the callback resolves, unless it has committed, and rolls back when
 * it rejects.
 */
export type Transact = <Result>(work: (transaction: OpenTransaction) => Promise<Result>) => Promise<Result>

/** A connection that no other transaction uses until it is released. */
export interface ReservedConnection {
  run: Run
  release: () => void
  /** Rolls back and releases. @param isUsable false when the connection may not answer: then nothing waits for it */
  rollback: (isUsable: boolean) => Promise<void>
}

export interface TransactOptions {
  /** The statement that begins a transaction. */
  begin: OwnStatement
  /** Maximum time of a transaction, in ms; by default there is none. */
  timeout?: number
}

/** Returns a function that runs transactions, each on a connection that `reserve` returns. */
export function createTransact (
  reserve: () => Promise<ReservedConnection>, { begin, timeout }: TransactOptions
): Transact {
  return async function transact (work) {
    const transaction = new OpenTransaction(await reserve(), begin)
    try {
      const working = work(transaction)
      const result = await (timeout === undefined ? working : withDeadline(working, timeout))
      await transaction.end()
      return result
    } catch (error) {
      // The callback may still be running. Its statements must not reach another transaction.
      await transaction.rollback()
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
  /** BEGIN, which travels with the first statements. */
  #unsent: OwnStatement[]
  /** False as soon as it commits or rolls back. */
  #isOpen = true
  #hasEnded = false
  #messagesInFlight = 0
  #failure: Error | undefined

  constructor (connection: ReservedConnection, begin: OwnStatement) {
    this.#connection = connection
    this.#unsent = [begin]
  }

  readonly run: Run = async (statements) => await this.#send(statements)

  /** Runs the last statements and commits, in one round trip. @throws also when the outcome is unknown */
  async commit (statements: readonly OwnStatement[]): Promise<object[][]> {
    const isEmpty = statements.length === 0 && this.#unsent.length > 0
    const sent = this.#send(isEmpty ? [] : [...statements, COMMIT])
    this.#isOpen = false
    const rows = await sent
    // The time-out can have ended it meanwhile.
    if (!this.#hasEnded) this.#connection.release()
    this.#hasEnded = true
    return rows.slice(0, statements.length)
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
    if (this.#unsent.length > 0) return this.#connection.release()
    const isReachable = this.#failure === undefined || classifyError(this.#failure) !== 'unavailable'
    await this.#connection.rollback(isReachable && this.#messagesInFlight === 0)
  }

  async #send (statements: readonly OwnStatement[]): Promise<object[][]> {
    if (!this.#isOpen) throw new DatabaseUnavailable({ cause: new Error('The transaction has ended') })
    if (this.#failure !== undefined) throw this.#failure
    if (statements.length === 0) return []
    const before = this.#unsent
    this.#unsent = []
    this.#messagesInFlight++
    try {
      return (await this.#connection.run([...before, ...statements])).slice(before.length)
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
