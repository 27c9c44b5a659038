import { existsSync } from 'node:fs'
import { databaseOf } from '../dialect.ts'

/** Returns true if the URL names a SQLite file that does not exist. */
export function isMissing (url: string): boolean {
  return databaseOf(url) === 'sqlite' && !existsSync(fileOf(url))
}

/** Returns the path of a SQLite database, as the adapter reads it from the URL. */
export function fileOf (url: string): string {
  return url.replace(/^file:/, '')
}
