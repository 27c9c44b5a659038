import { LOCK_WAIT_MS, type MigrationSession } from '../migrations/session.ts'
import { openConnection } from './open-connection.ts'
import { untilUnlocked } from './transactions.ts'

export async function openSession (url: string): Promise<MigrationSession> {
  const connection = await openConnection(url)
  // Foreign keys are checked at the end of each migration, because a table that a migration recreates is missing for a
  // moment. SQLite ignores this pragma within a transaction.
  connection.runScript('PRAGMA foreign_keys = OFF')
  let isChanged = false
  return {
    rows: async (sql) => connection.all(sql, []),
    script: async (sql) => { connection.runScript(sql) },
    begin: async () => {
      await untilUnlocked(LOCK_WAIT_MS, () => { connection.runScript('BEGIN IMMEDIATE') })
    },
    commit: async () => {
      const [broken] = connection.all('PRAGMA foreign_key_check', []) as Array<{ table: string }>
      if (broken !== undefined) throw new Error(`it leaves rows of ${broken.table} without the row that they refer to`)
      connection.runScript('COMMIT')
      isChanged = true
    },
    close: async () => {
      // Makes the file alone a copy of the database, also while the closed connection keeps its write-ahead log.
      if (isChanged) connection.runScript('PRAGMA wal_checkpoint(TRUNCATE)')
      connection.close()
    }
  }
}
