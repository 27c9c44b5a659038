import { setTimeout as sleep } from 'node:timers/promises'
import type { SqlMigrationAwareDriverAdapterFactory, SqlQuery, SqlResultSet } from '@prisma/driver-adapter-utils'
import { OperationalError } from '../../operational-error.ts'
import { isLocked } from '../error-classification.ts'
import { OpenTransaction } from '../open-transaction.ts'
import type { TransactionalAdapter } from '../transact.ts'
import { SqliteConnection } from './connection.ts'
import { fileOf, problemOfFolder } from './database-file.ts'

/** Pause between two attempts to acquire a lock that another process holds. It does not block the event loop. */
const LOCK_RETRY_MS = 10

/**
 * Settings of every connection. WAL lets reads continue while the writer commits. FULL makes COMMIT wait for the disk.
 * SQLite truncates the WAL to 16 MB after a checkpoint.
 */
const PRAGMAS = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA foreign_keys = ON;
  PRAGMA journal_size_limit = 16777216;
  PRAGMA cache_size = -16384;
`

/** Connects Prisma and the service to a SQLite file. */
export class SqliteAdapterFactory implements SqlMigrationAwareDriverAdapterFactory {
  readonly provider = 'sqlite'
  readonly adapterName = 'petstore-sqlite'
  readonly #path: string
  readonly #lockTimeout: number

  /** @param lockTimeout maximum time to wait for a lock of another process, in ms */
  constructor (url: string, lockTimeout = 5_000) {
    this.#path = fileOf(url)
    this.#lockTimeout = lockTimeout
  }

  async connect (): Promise<SqliteAdapter> {
    const problem = problemOfFolder(this.#path)
    if (problem !== undefined) throw new OperationalError(problem)
    const connection = new SqliteConnection(this.#path)
    try {
      await untilUnlocked(this.#lockTimeout, () => { connection.runScript(PRAGMAS) })
    } catch (error) {
      connection.close()
      throw error
    }
    return new SqliteAdapter(connection, this.#lockTimeout)
  }

  /**
   * Connects for groups of writes. Before a statement changes rows, SQLite copies their pages, to undo the statement if
   * it fails. By default more than 64 KB of copies go to a temporary file, which costs a group a tenth of its time.
   */
  async connectWriter (): Promise<SqliteAdapter> {
    const adapter = await this.connect()
    await adapter.executeScript('PRAGMA temp_store = MEMORY')
    return adapter
  }

  async connectToShadowDb (): Promise<SqliteAdapter> {
    return new SqliteAdapter(new SqliteConnection(':memory:'), this.#lockTimeout)
  }
}

/**
 * One connection, with transactions that are safe for the writer:
 *
 * - A statement outside the open transaction waits for its end. Within it, a ROLLBACK would undo the statement.
 * - Transactions begin IMMEDIATE, so that none fails at its first write because another process wrote first
 *   (SQLITE_BUSY_SNAPSHOT).
 * - They, and statements outside, wait asynchronously for a lock that another process holds, and do not block this one.
 * - After their end, successful or not, the connection is outside any transaction. After a COMMIT that fails, it would
 *   stay inside, which loses every later write (prisma/orm#29933).
 */
export class SqliteAdapter implements TransactionalAdapter {
  readonly provider = 'sqlite'
  readonly adapterName = 'petstore-sqlite'
  readonly #connection: SqliteConnection
  readonly #lockTimeout: number
  /** Resolves at the end of the newest transaction, or is `undefined` if none is open. */
  #end: Promise<void> | undefined
  /** Called after each COMMIT with the time that it waited for the disk, in ms. */
  onCommit: ((waited: number) => void) | undefined

  constructor (connection: SqliteConnection, lockTimeout: number) {
    this.#connection = connection
    this.#lockTimeout = lockTimeout
  }

  readonly queryRaw = async (query: SqlQuery): Promise<SqlResultSet> => {
    while (this.#end !== undefined) await this.#end
    return await untilUnlocked(this.#lockTimeout, () => this.#connection.query(query))
  }

  readonly executeRaw = async (query: SqlQuery): Promise<number> => {
    while (this.#end !== undefined) await this.#end
    return await untilUnlocked(this.#lockTimeout, () => this.#connection.execute(query))
  }

  readonly runOwn = (sql: string, values: readonly unknown[]): object[] | Promise<object[]> =>
    this.#end === undefined ? this.#connection.all(sql, values) : this.#end.then(() => this.runOwn(sql, values))

  /** Returns the first row of a statement. Only for a connection without transactions. */
  readonly readRow = (sql: string, values: readonly unknown[]): object | undefined => this.#connection.get(sql, values)

  readonly executeScript = async (script: string): Promise<void> => { this.#connection.runScript(script) }

  readonly dispose = async (): Promise<void> => { this.#connection.close() }

  readonly startTransaction = async (): Promise<OpenTransaction> => {
    while (this.#end !== undefined) await this.#end
    let end = (): void => {}
    this.#end = new Promise((resolve) => {
      end = () => {
        this.#end = undefined
        resolve()
      }
    })
    try {
      await untilUnlocked(this.#lockTimeout, () => this.#connection.all('BEGIN IMMEDIATE', []))
    } catch (error) {
      end()
      throw error
    }
    const connection = this.#connection
    return new OpenTransaction({
      provider: this.provider,
      adapterName: this.adapterName,
      queryRaw: async (query) => connection.query(query),
      executeRaw: async (query) => connection.execute(query),
      runOwn: (sql, values) => connection.all(sql, values)
    }, {
      commit: async () => {
        this.#commit()
        end()
        return []
      },
      rollback: async () => {
        this.#rollback()
        end()
      }
    })
  }

  #commit (): void {
    if (this.onCommit === undefined) {
      this.#connection.all('COMMIT', [])
      return
    }
    const began = performance.now()
    const before = process.cpuUsage()
    this.#connection.all('COMMIT', [])
    const { user, system } = process.cpuUsage(before)
    // A large group takes milliseconds of the processor's time to write its pages.
    this.onCommit(performance.now() - began - (user + system) / 1_000)
  }

  #rollback (): void {
    try {
      this.#connection.all('ROLLBACK', [])
    } catch {
      // "no transaction is active": SQLite has rolled back by itself.
    }
  }
}

async function untilUnlocked<Result> (timeout: number, attempt: () => Result): Promise<Result> {
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
