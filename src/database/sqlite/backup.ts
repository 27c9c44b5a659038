import { existsSync } from 'node:fs'
import { chmod, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { OperationalError } from '../../operational-error.ts'
import { databaseOf } from '../dialect.ts'
import { fileOf, isMissing } from './database-file.ts'
import { openConnection } from './open-connection.ts'

/**
 * Saves the committed state of a SQLite database while other processes read and write it. The file gets its name only
 * when the copy is complete and on disk.
 *
 * VACUUM INTO reads one snapshot. SQLite's backup API would restart after each write of another process.
 *
 * @returns the size of the copy in bytes
 * @throws OperationalError if the database or the file name does not allow a copy
 */
export async function saveCopy (url: string, file: string): Promise<number> {
  checkPaths(url, file)

  const part = `${file}.part-${process.pid}`
  const source = await openConnection(url)
  try {
    source.all('VACUUM INTO ?', [part])
    // SQLite gives a copy the mode that other new files have, whatever the mode of the database.
    await chmod(part, 0o600)
    // VACUUM INTO leaves the copy in the cache of the operating system.
    const size = await flush(part, 'r+')
    await rename(part, file)
    // Windows flushes no folders, and only files that are open for writing.
    if (process.platform !== 'win32') await flush(dirname(file), 'r')
    return size
  } catch (error) {
    await rm(part, { force: true })
    throw error
  } finally {
    source.close()
  }
}

function checkPaths (url: string, file: string): void {
  if (databaseOf(url) === 'postgresql') {
    throw new OperationalError('DATABASE_URL names a PostgreSQL database. Back it up with its own tool: ' +
      'pg_dump --format=custom --file=FILE "$DATABASE_URL"')
  }
  if (isMissing(url)) {
    throw new OperationalError(`There is no database at ${fileOf(url)}. Set DATABASE_URL to the database to save.`)
  }
  if (existsSync(file)) {
    throw new OperationalError(`${file} exists already. Name a file that does not exist.`)
  }
  if (!existsSync(dirname(file))) {
    throw new OperationalError(`The folder of ${file} does not exist. Create it, or name another file.`)
  }
}

/** Flushes a file, or the names in a folder, to disk. @returns its size in bytes */
async function flush (path: string, flags: 'r' | 'r+'): Promise<number> {
  const opened = await open(path, flags)
  try {
    await opened.sync()
    return (await opened.stat()).size
  } finally {
    await opened.close()
  }
}
