import type { Config } from '../../config.ts'
import { OperationalError } from '../../operational-error.ts'
import { databaseOf } from '../dialect.ts'
import { isMissing } from '../sqlite/database-file.ts'
import { migrationNames, pendingMigrations } from './history.ts'
import { migrate } from './migrate.ts'

/** Applies pending migrations where the settings allow it. @throws OperationalError where they do not */
export async function migrateOrVerify (config: Pick<Config, 'DATABASE_URL' | 'MIGRATE_ON_START'>): Promise<void> {
  if (migratesOnStart(config)) await migrate(config.DATABASE_URL)
  else await verifyMigrations(config.DATABASE_URL)
}

/** @throws OperationalError for a database that is not there or misses migrations */
export async function verifyMigrations (url: string): Promise<void> {
  const pending = await pendingWithoutCreating(url)
  if (pending.length > 0) throw new OperationalError(`The database misses ${pending.length} migration(s): ${pending.join(', ')}. Apply them with: npx --no petstore migrate`)
}

export function migratesOnStart ({ DATABASE_URL, MIGRATE_ON_START }: Pick<Config, 'DATABASE_URL' | 'MIGRATE_ON_START'>): boolean {
  return MIGRATE_ON_START ?? databaseOf(DATABASE_URL) === 'sqlite'
}

/** As `pendingMigrations`, for those who only look: opening a SQLite file that is not there would create it. */
export async function pendingWithoutCreating (url: string): Promise<string[]> {
  return isMissing(url) ? await migrationNames('sqlite') : await pendingMigrations(url)
}
