import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { PACKAGE } from '../../folders.ts'
import { databaseOf, type DatabaseName } from '../dialect.ts'
import { isMissing } from '../sqlite/database-file.ts'
import type { MigrationSession } from './session.ts'

/** Prisma's table of migrations. A migration of the service is one transaction, so it is finished or not there. */
export const FINISHED_MIGRATIONS = `
  SELECT migration_name AS name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL`

// They return a row if a process has ever started a migration. PostgreSQL's to_regclass remembers that there is none.
const HAS_HISTORY: Record<DatabaseName, string> = {
  sqlite: "SELECT 1 FROM sqlite_master WHERE name = '_prisma_migrations'",
  postgresql: "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = '_prisma_migrations'"
}

/**
 * Returns the names of the migrations that this version of the service needs and the database has not finished. Does
 * not create a missing SQLite file, as opening it would.
 *
 * @throws if the service cannot reach the database
 */
export async function pendingMigrations (url: string): Promise<string[]> {
  if (isMissing(url)) return await migrationNames('sqlite')
  const session = await openMigrationSession(url)
  try {
    return await pendingIn(session, databaseOf(url))
  } finally {
    await session.close()
  }
}

/** As `pendingMigrations`, by an open connection. */
export async function pendingIn (session: MigrationSession, database: DatabaseName): Promise<string[]> {
  const known = await migrationNames(database)
  if ((await session.rows(HAS_HISTORY[database])).length === 0) return known
  const finished = new Set((await session.rows(FINISHED_MIGRATIONS) as Array<{ name: string }>).map(({ name }) => name))
  return known.filter((name) => !finished.has(name))
}

/** Returns the names of the migrations in the repository for one database, oldest first. */
export async function migrationNames (database: DatabaseName): Promise<string[]> {
  const entries = await readdir(migrationsFolder(database), { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name).sort()
}

export function migrationsFolder (database: DatabaseName): string {
  return join(PACKAGE, 'prisma', database, 'migrations')
}

/** Connects to a database. Creates a missing SQLite file, and with the first `begin` a missing schema of PostgreSQL. */
export async function openMigrationSession (url: string): Promise<MigrationSession> {
  if (databaseOf(url) === 'sqlite') return await (await import('../sqlite/migration-session.ts')).openSession(url)
  return await (await import('../postgresql/migration-session.ts')).openSession(url)
}
