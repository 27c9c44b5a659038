import { existsSync } from 'node:fs'
import { databaseOf } from '../dialect.ts'

/** Whether the URL names a SQLite file that is not there. */
export function isMissing (url: string): boolean {
  return databaseOf(url) === 'sqlite' && !existsSync(fileOf(url))
}

/** The path of a SQLite database, as the adapter reads it from the URL. */
export function fileOf (url: string): string {
  return url.replace(/^file:/, '')
}
