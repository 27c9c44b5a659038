import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { databaseOf } from '../dialect.ts'

/** Returns true if the URL names a SQLite file that does not exist. */
export function isMissing (url: string): boolean {
  return databaseOf(url) === 'sqlite' && !existsSync(fileOf(url))
}

/** Returns the path of a SQLite database, as the adapter reads it from the URL. */
export function fileOf (url: string): string {
  return url.replace(/^file:/, '')
}

/** Returns why the folder of a database cannot contain it, with the remedy. */
export function problemOfFolder (path: string): string | undefined {
  const folder = dirname(resolve(path))
  try {
    if (statSync(folder).isDirectory()) return undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM') {
      return `This process has no permission to enter the folder ${folder} of the database file. Grant it, or set ` +
        'DATABASE_URL to another file.'
    }
  }
  return `The folder ${folder} does not exist. Create it, or set DATABASE_URL to another file.`
}
