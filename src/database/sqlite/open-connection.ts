import type { DatabaseSyncOptions } from '@photostructure/sqlite'
import { OperationalError } from '../../operational-error.ts'
import { SqliteConnection } from './connection.ts'
import { fileOf, problemOfFolder } from './database-file.ts'
import { untilUnlocked } from './transactions.ts'

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

/** Maximum time to wait for a lock of another process, in ms, outside of the service. */
export const LOCK_TIMEOUT_MS = 5_000

/** @throws OperationalError when the folder of the file does not allow it */
export async function openConnection (
  url: string, lockTimeout = LOCK_TIMEOUT_MS, options?: DatabaseSyncOptions
): Promise<SqliteConnection> {
  const path = fileOf(url)
  const problem = problemOfFolder(path)
  if (problem !== undefined) throw new OperationalError(problem)
  const connection = new SqliteConnection(path, options)
  try {
    await untilUnlocked(lockTimeout, () => { connection.runScript(PRAGMAS) })
  } catch (error) {
    connection.close()
    throw error
  }
  return connection
}

/**
 * Opens a connection for groups of writes. Before a statement changes rows, SQLite copies their pages, to undo the
 * statement if it fails. By default more than 64 KB of copies go to a temporary file, which costs a group a tenth of
 * its time.
 */
export async function openWriter (url: string, lockTimeout: number): Promise<SqliteConnection> {
  const connection = await openConnection(url, lockTimeout)
  connection.runScript('PRAGMA temp_store = MEMORY')
  return connection
}
