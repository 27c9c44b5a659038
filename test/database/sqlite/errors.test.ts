// Only on SQLite: tests the connections to SQLite.

import { existsSync } from 'node:fs'
import t from 'tap'
import { classifyError, isLocked } from '../../../src/database/error-classification.ts'
import { sqliteAdapterFactory } from '../../../src/database/sqlite/adapter.ts'
import { SqliteConnection } from '../../../src/database/sqlite/connection.ts'
import { fileOf } from '../../../src/database/sqlite/database-file.ts'
import { releaseClosedFiles } from '../../../src/database/sqlite/driver.ts'
import { database, emptyDatabase, freshDatabase } from '../../support/database.ts'

const skip = database === 'postgresql' && 'it tests SQLite'

const ERRORS = [
  'UNIQUE constraint failed: pets.id', 'no such table: main.pets', 'near "SELEC": syntax error', 'malformed JSON'
]

/** Errors after which the service answers that the database is unavailable. */
const UNAVAILABLE = [
  'database is locked', 'database table is locked: pets', 'database schema is locked: main',
  'attempt to write a readonly database', 'disk I/O error', 'database disk image is malformed',
  'malformed database schema (pets_idx)', 'database or disk is full', 'unable to open database file',
  'Failed to open database: unable to open database file', 'locking protocol', 'file is not a database'
]

const sqliteError = (message: string): Error => Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR' })

t.test('an error of SQLite is known by its message', async (t) => {
  for (const message of ERRORS) t.equal(classifyError(sqliteError(message)), 'statement error', message)
  for (const message of UNAVAILABLE) {
    t.equal(classifyError(sqliteError(message)), 'unavailable', message)
    t.equal(classifyError(new Error(message)), 'statement error', `${message}, not of SQLite`)
  }
  t.same(UNAVAILABLE.filter((message) => isLocked(sqliteError(message))), ['database is locked'])
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
  await t.rejects(factory.connect(), { message: /^database is locked/ })
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
  t.throws(() => first.all('BEGIN IMMEDIATE', []), { message: /^database is locked/ })
  second.all('COMMIT', [])
  first.all('BEGIN IMMEDIATE', [])
  first.all('COMMIT', [])
})
