import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseOf } from '../dialect.ts'
import { isLocked } from '../error-classification.ts'
import { migrationNames, migrationsFolder, pendingMigrations } from './history.ts'
import { withSchemaEngine } from './schema-engine.ts'

const FILTERS = { externalTables: [], externalEnums: [] }

/** How long a process that lost the race for the migration lock looks again, and the longest pause before it does, in ms. */
const LOCK_WAIT_MS = 60_000
const LOCK_PAUSE_MS = 200

/**
 * Brings the database at `url` up to the newest migration, creating a SQLite file that is not there.
 * Several processes may call it at once; one migrates, the others find it done. Each migration is a
 * transaction, so a process that is killed leaves none half-way.
 *
 * @returns the names of the migrations it applied, oldest first
 * @throws when a migration fails or the database cannot be reached
 */
export async function migrate (url: string): Promise<string[]> {
  const latest = Date.now() + LOCK_WAIT_MS
  for (;;) {
    try {
      return (await pendingMigrations(url)).length === 0 ? [] : await applyMigrations(url)
    } catch (error) {
      if (Date.now() > latest || !isLockedOut(error)) throw error
    }
    await sleep(Math.random() * LOCK_PAUSE_MS)
  }
}

/** Another process holds the lock, and may be done in a moment: the engine's P1002 on PostgreSQL, SQLITE_BUSY on SQLite. */
function isLockedOut (error: unknown): boolean {
  return isLocked(error) || /P1002|SQLITE_BUSY|SocketTimeout|database is locked/.test(String(error))
}

async function applyMigrations (url: string): Promise<string[]> {
  const database = databaseOf(url)
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
  })
}

