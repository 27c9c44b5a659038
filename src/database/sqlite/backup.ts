import { existsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { OperationalError } from '../../operational-error.ts'
import { databaseOf } from '../dialect.ts'
import { fileOf, isMissing } from './database-file.ts'

/**
 * Saves what is committed in a SQLite database at this moment, while others read and write it. Under its
 * name the copy is whole and on disk, or not there at all.
 *
 * VACUUM INTO reads one snapshot; SQLite's backup API would begin again with each write of another process.
 *
 * @returns its size in bytes
 * @throws OperationalError when it cannot be made as asked
 */
export async function saveCopy (url: string, file: string): Promise<number> {
  if (databaseOf(url) === 'postgresql') throw new OperationalError('DATABASE_URL names a PostgreSQL database. Back it up with its own tool: pg_dump --format=custom --file=FILE "$DATABASE_URL"')
  if (isMissing(url)) throw new OperationalError(`There is no database at ${fileOf(url)}. Set DATABASE_URL to the one to save.`)
  if (existsSync(file)) throw new OperationalError(`${file} exists already. Name a file that does not.`)
  if (!existsSync(dirname(file))) throw new OperationalError(`The folder of ${file} does not exist. Create it, or name another file.`)

  const part = `${file}.part-${process.pid}`
  const { SqliteAdapterFactory } = await import('./adapter.ts')
  const source = await new SqliteAdapterFactory(url).connect()
  try {
    await source.executeRaw({ sql: 'VACUUM INTO ?', args: [part], argTypes: [{ scalarType: 'string', arity: 'scalar' }] })
    const size = await flush(part)
    await rename(part, file)
    return size
  } catch (error) {
    await rm(part, { force: true })
    throw error
  } finally {
    await source.dispose()
  }
}

/** VACUUM INTO leaves the copy in the system's cache. */
async function flush (file: string): Promise<number> {
  const copy = await open(file, 'r+')
  try {
    await copy.sync()
    return (await copy.stat()).size
  } finally {
    await copy.close()
  }
}
