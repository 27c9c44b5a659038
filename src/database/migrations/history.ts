import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { SqlDriverAdapter, SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils'
import { PACKAGE } from '../../folders.ts'
import { databaseOf, type DatabaseName } from '../dialect.ts'
import { connectionOf, schemaOf } from '../postgresql/connection-url.ts'
import { prepareSession } from '../postgresql/session.ts'

/**
 * Returns the names of the migrations that this version of the service needs and the database has not finished.
 *
 * @throws if the service cannot reach the database
 */
export async function pendingMigrations (url: string): Promise<string[]> {
  const known = await migrationNames(databaseOf(url))
  const adapter = await (await adapterFactory(url)).connect()
  try {
    if (!(await hasHistory(adapter))) return known
    const rows = await rowsOf(adapter, `
      SELECT migration_name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL`)
    const finished = new Set(rows.map(([name]) => name))
    return known.filter((name) => !finished.has(name))
  } finally {
    await adapter.dispose()
  }
}

export async function rowsOf (adapter: SqlDriverAdapter, sql: string): Promise<unknown[][]> {
  return (await adapter.queryRaw({ sql, args: [], argTypes: [] })).rows
}

/** Returns true if a process has ever started a migration of this database. */
export async function hasHistory (adapter: SqlDriverAdapter): Promise<boolean> {
  const [[count] = []] = await rowsOf(adapter, adapter.provider === 'sqlite'
    ? "SELECT count(*) FROM sqlite_master WHERE name = '_prisma_migrations'"
    : `SELECT count(*) FROM information_schema.tables
        WHERE table_schema = current_schema() AND table_name = '_prisma_migrations'`)
  return Number(count) > 0
}

/** Returns the names of the migrations in the repository for one database, oldest first. */
export async function migrationNames (database: DatabaseName): Promise<string[]> {
  const entries = await readdir(migrationsFolder(database), { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name).sort()
}

export async function adapterFactory (url: string): Promise<SqlMigrationAwareDriverAdapterFactory> {
  if (databaseOf(url) === 'sqlite') {
    const { sqliteAdapterFactory } = await import('../sqlite/adapter.ts')
    return sqliteAdapterFactory(url)
  }
  const { PrismaPg } = await import('@prisma/adapter-pg')
  return new PrismaPg({
    ...connectionOf(url),
    max: 1,
    connectionTimeoutMillis: 10_000,
    // A migration takes as long as it takes, whatever the role presets. It creates the schema if it is missing.
    // eslint-disable-next-line @typescript-eslint/no-misused-promises -- the pool waits for it
    onConnect: async (client) => {
      await prepareSession(client, url, { settings: ['statement_timeout=0', 'lock_timeout=0'], canMissSchema: true })
    }
  }, { schema: schemaOf(url) })
}

export function migrationsFolder (database: DatabaseName): string {
  return join(PACKAGE, 'prisma', database, 'migrations')
}
