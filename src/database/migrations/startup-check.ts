import type { Config } from '../../config.ts'
import { OperationalError } from '../../operational-error.ts'
import { databaseOf } from '../dialect.ts'
import { pendingMigrations } from './history.ts'
import { migrate } from './migrate.ts'

type MigrationConfig = Pick<Config, 'DATABASE_URL' | 'MIGRATE_ON_START'>

/**
 * Applies pending migrations if the settings allow it.
 *
 * @throws OperationalError if they do not, and migrations are pending
 */
export async function migrateOrVerify (config: MigrationConfig): Promise<void> {
  await (migratesOnStart(config) ? migrate : verifyMigrations)(config.DATABASE_URL)
}

/** @throws OperationalError if the database does not exist or misses migrations */
export async function verifyMigrations (url: string): Promise<void> {
  const pending = await pendingMigrations(url)
  if (pending.length > 0) {
    throw new OperationalError(`The database misses ${pending.length} migration(s): ${pending.join(', ')}. ` +
      'Apply them with: npx --no petstore migrate')
  }
}

export function migratesOnStart ({ DATABASE_URL, MIGRATE_ON_START }: MigrationConfig): boolean {
  return MIGRATE_ON_START ?? databaseOf(DATABASE_URL) === 'sqlite'
}
