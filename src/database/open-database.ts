import { databaseOf } from './dialect.ts'
import type { Database, DatabaseOptions } from './database.ts'

/** Opens the clients; connections are made when they are first needed. Loads the code of the one database only. */
export async function openDatabase (options: DatabaseOptions): Promise<Database> {
  if (databaseOf(options.url) === 'sqlite') {
    const { openSqlite } = await import('./sqlite/clients.ts')
    return await openSqlite(options)
  }
  const { openPostgresql } = await import('./postgresql/clients.ts')
  return await openPostgresql(options)
}
