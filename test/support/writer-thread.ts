import { setTimeout as sleep } from 'node:timers/promises'
import type { Database, DatabaseOptions } from '../../src/database/database.ts'
import { openSqlite } from '../../src/database/sqlite/clients.ts'

/** A disk that is always too slow for COMMITs in the main thread. */
const SLOW_DISK = { record () {}, isSlow: () => true }

/** Opens a SQLite database whose transactions run in the writer thread, as on a slow disk. */
export async function openWithWriterThread (options: DatabaseOptions): Promise<Database> {
  const database = await openSqlite(options, SLOW_DISK)
  while (await database.transact(async ({ connection }) => connection.adapterName) !== 'petstore-writer-thread') {
    await sleep(10)
  }
  return database
}
