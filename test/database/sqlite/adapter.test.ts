// Only on SQLite: tests the connections to SQLite.

import { readdirSync, readlinkSync } from 'node:fs'
import t from 'tap'
import type { SqliteConnection } from '../../../src/database/sqlite/connection.ts'
import { openConnection, openWriter } from '../../../src/database/sqlite/open-connection.ts'
import { database, freshDatabase } from '../../support/database.ts'

const skip = (database === 'postgresql' && 'it tests SQLite') ||
  (process.platform !== 'linux' && 'other systems do not list the open files')

/** Changes more pages than SQLite keeps copies of in memory by default: 64 KB. */
const INSERT = `
  INSERT INTO accounts (name, created_at)
  SELECT hex(randomblob(1000)), '2026-11-21T10:00:00.000Z'
  FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT i FROM n)`
const UPDATE = "UPDATE accounts SET name = name || '!' WHERE id > 0"

t.test('a write of many pages makes no temporary file', { skip }, async (t) => {
  const url = await freshDatabase(t)
  const temporaryFilesOf = (connection: SqliteConnection): number => {
    const before = openTemporaryFiles()
    for (const sql of ['BEGIN', INSERT, UPDATE]) connection.all(sql, [])
    const made = openTemporaryFiles() - before
    connection.all('ROLLBACK', [])
    connection.close()
    return made
  }
  t.ok(temporaryFilesOf(await openConnection(url, 0)) > 0, 'a connection without the setting makes one')
  t.equal(temporaryFilesOf(await openWriter(url, 0)), 0)
})

/** Returns the number of SQLite's temporary files, which it deletes when it opens them. */
function openTemporaryFiles (): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes('/etilqs_')
    } catch {
      return false // closed meanwhile
    }
  }).length
}
