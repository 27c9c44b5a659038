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
  const { DATABASE_URL: url } = config
  if (!migratesOnStart(config)) return await verifyMigrations(url)
  // First, because its error says that a server cannot be reached, and that of the pooler's check does not.
  await pendingMigrations(url)
  await verifyConnection(url)
  await migrate(url)
}

/** @throws OperationalError if the database does not exist or misses migrations */
export async function verifyMigrations (url: string): Promise<void> {
  const pending = await pendingMigrations(url)
  await verifyConnection(url)
  if (pending.length > 0) {
    throw new OperationalError(`The database misses ${pending.length} migration(s): ${pending.join(', ')}. ` +
      'Apply them with: npx --no petstore migrate')
  }
}

/** @throws OperationalError if the service cannot work with the connection */
async function verifyConnection (url: string): Promise<void> {
  if (databaseOf(url) === 'sqlite') return
  const { refuseTransactionPooler } = await import('../postgresql/pooler.ts')
  await refuseTransactionPooler(url)
}

export function migratesOnStart ({ DATABASE_URL, MIGRATE_ON_START }: MigrationConfig): boolean {
  return MIGRATE_ON_START ?? databaseOf(DATABASE_URL) === 'sqlite'
}
