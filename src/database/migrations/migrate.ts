import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseOf } from '../dialect.ts'
import { isLocked } from '../error-classification.ts'
import { migrationNames, migrationsFolder, pendingMigrations } from './history.ts'
import { withSchemaEngine } from './schema-engine.ts'

const FILTERS = { externalTables: [], externalEnums: [] }

/** Maximum time that a process waits for the migration lock of another process. */
const LOCK_WAIT_MS = 60_000

/** Maximum pause between two attempts to acquire the migration lock. */
const LOCK_PAUSE_MS = 200

/**
 * Applies all pending migrations to the database at `url`, and creates a missing SQLite file. Several processes may
 * call it at once: one of them migrates, and the others then have nothing to do. Each migration is one transaction, so
 * a killed process leaves no partial migration.
 *
 * @returns the names of the applied migrations, oldest first
 * @throws if a migration fails, or the service cannot reach the database
 */
export async function migrate (url: string): Promise<string[]> {
  const latest = performance.now() + LOCK_WAIT_MS
  for (;;) {
    try {
      return (await pendingMigrations(url)).length === 0 ? [] : await applyMigrations(url)
    } catch (error) {
      if (performance.now() > latest || !isLockedOut(error)) throw error
    }
    await sleep(Math.random() * LOCK_PAUSE_MS)
  }
}

/** Returns true if another process holds the lock: the engine reports P1002 on PostgreSQL and SQLITE_BUSY on SQLite. */
function isLockedOut (error: unknown): boolean {
  return isLocked(error) || /P1002|SQLITE_BUSY|SocketTimeout|database is locked/.test(String(error))
}

async function applyMigrations (url: string): Promise<string[]> {
  const database = databaseOf(url)
  const { releaseClosedFiles } = await import('../sqlite/driver.ts')
  // The connection that read the history would keep the engine out, and the engine's would keep everybody out.
  await releaseClosedFiles()
  const folder = migrationsFolder(database)
  const migrationDirectories = await Promise.all((await migrationNames(database)).map(async (path) => ({
    path,
    migrationFile: {
      path: 'migration.sql',
      content: { tag: 'ok' as const, value: await readFile(`${folder}/${path}/migration.sql`, 'utf8') }
    }
  })))
  return await withSchemaEngine(url, async (engine) => {
    const { appliedMigrationNames } = await engine.applyMigrations({
      migrationsList: {
        baseDir: folder,
        lockfile: { path: 'migration_lock.toml', content: `provider = "${database}"\n` },
        shadowDbInitScript: '',
        migrationDirectories
      },
      filters: FILTERS
    })
    return appliedMigrationNames
  }).finally(releaseClosedFiles)
}
