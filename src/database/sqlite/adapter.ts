import { setTimeout as sleep } from 'node:timers/promises'
import { PrismaBetterSqlite3 } from '@prisma/adapter-better-sqlite3'
import type {
  SqlDriverAdapter, SqlMigrationAwareDriverAdapterFactory, SqlQuery, Transaction
} from '@prisma/driver-adapter-utils'
import { rejectStatementsAfterEnd } from '../transaction-guard.ts'
import { isLocked } from '../error-classification.ts'
import { cachePreparedStatements } from './statement-cache.ts'

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

/**
 * Prisma's better-sqlite3 adapter, with transactions that are safe for the one writing connection:
 *
 * - They begin IMMEDIATE, so that no transaction fails at its first write because another process wrote first
 *   (SQLITE_BUSY_SNAPSHOT).
 * - They wait asynchronously for a lock that another process holds, and do not block the process.
 * - After their end, successful or not, the connection is outside any transaction. The stock adapter only sends COMMIT.
 *   If that fails, the connection stays inside the transaction, which loses every later write (prisma/orm#29933).
 */
export class SqliteAdapterFactory implements SqlMigrationAwareDriverAdapterFactory {
  readonly provider = 'sqlite'
  readonly adapterName = 'petstore-better-sqlite3'
  readonly #factory: PrismaBetterSqlite3
  readonly #lockTimeout: number

  /** @param lockTimeout maximum time to wait for a lock of another process, in ms */
  constructor (url: string, lockTimeout = 5_000) {
    // timeout: 0, because SQLite's own busy wait blocks the thread of the event loop.
    this.#factory = new PrismaBetterSqlite3({ url, timeout: 0 })
    this.#lockTimeout = lockTimeout
  }

  async connect (): Promise<SqlDriverAdapter> {
    const adapter = await this.#factory.connect()
    try {
      await untilUnlocked(this.#lockTimeout, async () => { await adapter.executeScript(PRAGMAS) })
    } catch (error) {
      await adapter.dispose()
      throw error
    }
    cachePreparedStatements(adapter)
    return withSafeTransactions(adapter, this.#lockTimeout)
  }

  async connectToShadowDb (): Promise<SqlDriverAdapter> {
    return await this.#factory.connectToShadowDb()
  }
}

function withSafeTransactions (adapter: SqlDriverAdapter, lockTimeout: number): SqlDriverAdapter {
  let last: Promise<void> = Promise.resolve()

  async function startTransaction (): Promise<Transaction> {
    const previous = last
    let end = (): void => {}
    last = new Promise((resolve) => { end = resolve })
    await previous
    try {
      await untilUnlocked(lockTimeout, async () => { await adapter.executeScript('BEGIN IMMEDIATE') })
    } catch (error) {
      end()
      throw error
    }
    return rejectStatementsAfterEnd(transaction(adapter, end))
  }

  return {
    provider: adapter.provider,
    adapterName: adapter.adapterName,
    queryRaw: async (query: SqlQuery) => await adapter.queryRaw(query),
    executeRaw: async (query: SqlQuery) => await adapter.executeRaw(query),
    executeScript: async (script: string) => { await adapter.executeScript(script) },
    dispose: async () => { await adapter.dispose() },
    startTransaction
  }
}

/** The client sends COMMIT or ROLLBACK itself. Then it calls `commit`, or `rollback`, also after a failed COMMIT. */
function transaction (adapter: SqlDriverAdapter, end: () => void): Transaction {
  const script = async (sql: string): Promise<void> => { await adapter.executeScript(sql) }
  return {
    provider: adapter.provider,
    adapterName: adapter.adapterName,
    options: { usePhantomQuery: false },
    queryRaw: async (query) => await adapter.queryRaw(query),
    executeRaw: async (query) => await adapter.executeRaw(query),
    commit: async () => { end() },
    rollback: async () => {
      try {
        await script('ROLLBACK')
      } catch {
        // "no transaction is active": SQLite rolled back by itself, or the client has sent ROLLBACK.
      } finally {
        end()
      }
    },
    createSavepoint: async (name) => { await script(`SAVEPOINT ${name}`) },
    rollbackToSavepoint: async (name) => { await script(`ROLLBACK TO ${name}`) },
    releaseSavepoint: async (name) => { await script(`RELEASE ${name}`) }
  }
}

async function untilUnlocked (timeout: number, attempt: () => Promise<void>): Promise<void> {
  const deadline = Date.now() + timeout
  for (;;) {
    try {
      await attempt()
      return
    } catch (error) {
      if (!isLocked(error) || Date.now() > deadline) throw error
    }
    await sleep(LOCK_RETRY_MS)
  }
}
