import { existsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
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
    const size = await flush(part)
    await rename(part, file)
    await flushFolder(dirname(file))
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

/** Flushes the copy to disk, because VACUUM INTO leaves it in the cache of the operating system. */
async function flush (file: string): Promise<number> {
  const copy = await open(file, 'r+')
  try {
    // SQLite gives a copy the mode that other new files have, whatever the mode of the database.
    await copy.chmod(0o600)
    await copy.sync()
    return (await copy.stat()).size
  } finally {
    await copy.close()
  }
}

/** Flushes the name of the copy. Windows flushes no folders. */
async function flushFolder (folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const opened = await open(folder)
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}
