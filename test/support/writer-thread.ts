import type { Database, DatabaseOptions } from '../../src/database/database.ts'
import { openSqlite } from '../../src/database/sqlite/clients.ts'

/** A disk that is always too slow for COMMITs in the main thread. */
const SLOW_DISK = { measure (commit: () => void) { commit() }, isSlow: () => true }

/** Opens a SQLite database whose transactions run in the writer thread, as on a slow disk. */
export async function openWithWriterThread (options: DatabaseOptions): Promise<Database> {
  let started = (): void => {}
  const ready = new Promise<void>((resolve) => { started = resolve })
  const database = await openSqlite({ ...options, onSlowDisk: started }, SLOW_DISK)
  // The first transaction starts the thread.
  await database.transact(async () => {})
  // The thread keeps no process alive until it is ready, and a file that runs alone has nothing else that does.
  const alive = setInterval(() => {}, 60_000)
  await ready
  clearInterval(alive)
  return database
}
