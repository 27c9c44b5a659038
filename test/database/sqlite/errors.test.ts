// Only on SQLite: tests the connections to SQLite.

import { existsSync } from 'node:fs'
import t from 'tap'
import { classifyError, isLocked } from '../../../src/database/error-classification.ts'
import { sqliteAdapterFactory } from '../../../src/database/sqlite/adapter.ts'
import { SqliteConnection } from '../../../src/database/sqlite/connection.ts'
import { fileOf } from '../../../src/database/sqlite/database-file.ts'
import { releaseClosedFiles } from '../../../src/database/sqlite/driver.ts'
import { SqliteError } from '../../../src/database/sqlite/errors.ts'
import { database, emptyDatabase, freshDatabase } from '../../support/database.ts'

const skip = database === 'postgresql' && 'it tests SQLite'

const ERRORS: Array<[message: string, errcode: number, code: string]> = [
  ['UNIQUE constraint failed: pets.id', 2067, 'SQLITE_ERROR'],
  ['no such table: main.pets', 1, 'SQLITE_ERROR'],
  ['near "SELEC": syntax error', 1, 'SQLITE_ERROR']
]

/** Errors after which the service answers that the database is unavailable. */
const UNAVAILABLE: typeof ERRORS = [
  ['database is locked', 5, 'SQLITE_BUSY'],
  ['database table is locked: pets', 6, 'SQLITE_LOCKED'],
  ['attempt to write a readonly database', 8, 'SQLITE_READONLY'],
  ['disk I/O error', 10, 'SQLITE_IOERR'],
  ['database disk image is malformed', 11, 'SQLITE_CORRUPT'],
  ['database or disk is full', 13, 'SQLITE_FULL'],
  ['unable to open database file', 14, 'SQLITE_CANTOPEN'],
  ['locking protocol', 15, 'SQLITE_PROTOCOL'],
  ['file is not a database', 26, 'SQLITE_NOTADB']
]

function sqliteError (message: string, errcode?: number): SqliteError {
  return new SqliteError({ code: 'ERR_SQLITE_ERROR', message, ...errcode !== undefined && { errcode } })
}

t.test('an error has its name, by its result code or by its message alone', async (t) => {
  for (const [message, errcode, code] of [...ERRORS, ...UNAVAILABLE]) {
    for (const error of [sqliteError(message, errcode), sqliteError(message)]) {
      t.match(error, { message, code, cause: { originalCode: code, originalMessage: message } })
    }
  }
  for (const [message] of ERRORS) t.equal(classifyError(sqliteError(message)), 'statement error', message)
  for (const [message] of UNAVAILABLE) t.equal(classifyError(sqliteError(message)), 'unavailable', message)
})

t.test('an extended result code counts as its primary code', async (t) => {
  const SQLITE_IOERR_WRITE = 778
  const SQLITE_BUSY_SNAPSHOT = 517
  t.match(sqliteError('', SQLITE_IOERR_WRITE), { code: 'SQLITE_IOERR' })
  t.ok(isLocked(sqliteError('', SQLITE_BUSY_SNAPSHOT)))
})

t.test('an error of the driver that is not of SQLite stays as it is', { skip }, async (t) => {
  const connection = new SqliteConnection(fileOf(await freshDatabase(t)))
  t.teardown(() => { connection.close() })
  t.throws(() => connection.all('SELECT ?', [Symbol('unbindable')]), TypeError)
  t.throws(() => connection.all('SELECT 9007199254740993 AS id', []), /too large to be represented/)
  t.same(connection.all('SELECT 9007199254740991 AS id', []), [{ id: 9007199254740991 }], 'and the next one works')
})

t.test('a closed connection gives up its file and its locks on demand', { skip }, async (t) => {
  const url = await emptyDatabase(t)
  const factory = sqliteAdapterFactory(url, 0)
  const first = await factory.connect()
  await first.executeScript('PRAGMA main.locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; CREATE TABLE kept (id); COMMIT')
  await t.rejects(factory.connect(), { code: 'SQLITE_BUSY' })
  const count = { sql: 'SELECT count(*) FROM kept', args: [], argTypes: [] }
  t.match(await first.queryRaw(count), { rows: [[0]] })
  await first.dispose()
  await releaseClosedFiles()
  t.notOk(existsSync(`${fileOf(url)}-wal`), 'the last connection deletes the write-ahead log')
  const next = await factory.connect()
  t.match(await next.queryRaw(count), { rows: [[0]] })
  t.equal(await next.executeRaw({ ...count, sql: 'INSERT INTO kept VALUES (1)' }), 1)
  await next.dispose()
})

t.test('a connection that failed a statement releases its locks', { skip }, async (t) => {
  const path = fileOf(await freshDatabase(t))
  const [first, second] = [new SqliteConnection(path), new SqliteConnection(path)]
  t.teardown(() => { for (const connection of [first, second]) connection.close() })
  const insert = "INSERT INTO accounts (id, name, created_at) VALUES (1, 'Ada', '') RETURNING id"
  first.all(insert, [])
  t.throws(() => first.all(insert, []), { message: /UNIQUE constraint/ })
  second.all('BEGIN IMMEDIATE', [])
  t.throws(() => first.all('BEGIN IMMEDIATE', []), { code: 'SQLITE_BUSY' })
  second.all('COMMIT', [])
  first.all('BEGIN IMMEDIATE', [])
  first.all('COMMIT', [])
})
