import { setTimeout as sleep } from 'node:timers/promises'
import { isLocked } from '../error-classification.ts'
import type { OwnStatement } from '../statements.ts'
import type { ReservedConnection } from '../transact.ts'
import type { SqliteConnection } from './connection.ts'

/** Pause between two attempts to acquire a lock that another process holds. It does not block the event loop. */
const LOCK_RETRY_MS = 10

/**
 * The transactions of a connection, one after the other:
 *
 * - They begin IMMEDIATE, so that none fails at its first write because another process wrote first
 *   (SQLITE_BUSY_SNAPSHOT), and wait asynchronously for a lock that another process holds.
 * - After their end, successful or not, the connection is outside any transaction. After a COMMIT that fails, it would
 *   stay inside, which loses every later write (prisma/orm#29933).
 */
export class Transactions {
  readonly #connection: SqliteConnection
  readonly #lockTimeout: number
  readonly #measure: (commit: () => void) => void
  /** Resolves at the end of the newest transaction, or is `undefined` if none is open. */
  #end: Promise<void> | undefined

  /**
   * @param lockTimeout maximum time to wait for a lock of another process, in ms
   * @param measure runs each COMMIT
   */
  constructor (
    connection: SqliteConnection, lockTimeout: number, measure: (commit: () => void) => void = (commit) => { commit() }
  ) {
    this.#connection = connection
    this.#lockTimeout = lockTimeout
    this.#measure = measure
  }

  /** Runs a statement outside of transactions: within one, a ROLLBACK would undo it. */
  async runBetween<Result> (statement: () => Result): Promise<Result> {
    while (this.#end !== undefined) await this.#end
    return await untilUnlocked(this.#lockTimeout, statement)
  }

  readonly begin = async (): Promise<ReservedConnection> => {
    while (this.#end !== undefined) await this.#end
    let resolveEnd = (): void => {}
    this.#end = new Promise((resolve) => { resolveEnd = resolve })
    const end = (): void => {
      this.#end = undefined
      resolveEnd()
    }
    try {
      await untilUnlocked(this.#lockTimeout, () => this.#connection.all('BEGIN IMMEDIATE', []))
    } catch (error) {
      end()
      throw error
    }
    return {
      run: async (statements) => this.#run(statements),
      commit: async (statements) => {
        const rows = this.#run(statements)
        this.#commit()
        end()
        return rows
      },
      rollback: async () => {
        this.#rollback()
        end()
      }
    }
  }

  #run (statements: readonly OwnStatement[]): object[][] {
    return statements.map(({ sql, values }) => this.#connection.all(sql, values))
  }

  #commit (): void {
    this.#measure(() => this.#connection.all('COMMIT', []))
  }

  #rollback (): void {
    try {
      this.#connection.all('ROLLBACK', [])
    } catch {
      // "no transaction is active": SQLite has rolled back by itself.
    }
  }
}

export async function untilUnlocked<Result> (timeout: number, attempt: () => Result): Promise<Result> {
  const deadline = performance.now() + timeout
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      if (!isLocked(error) || performance.now() > deadline) throw error
    }
    await sleep(LOCK_RETRY_MS)
  }
}
