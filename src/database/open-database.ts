import { databaseOf } from './dialect.ts'
import type { Database, DatabaseOptions } from './database.ts'

/** Opens the clients; connections are made when they are first needed. Loads the code of the one database only. */
export async function openDatabase (options: DatabaseOptions): Promise<Database> {
  if (databaseOf(options.url) === 'sqlite') return await (await import('./sqlite/clients.ts')).openSqlite(options)
  return await (await import('./postgresql/clients.ts')).openPostgresql(options)
}
