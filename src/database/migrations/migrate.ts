import { createHash, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { databaseOf, type DatabaseName } from '../dialect.ts'
import { migrationsFolder, openMigrationSession, pendingIn } from './history.ts'
import type { MigrationSession } from './session.ts'

/** The type of times in Prisma's table. */
const TIME: Record<DatabaseName, string> = { sqlite: 'DATETIME', postgresql: 'TIMESTAMPTZ' }

/**
 * Applies all pending migrations to the database at `url`, and creates a missing SQLite file. Several processes may
 * call it at once: one of them migrates, and the others then have nothing to do. Each migration is one transaction, so
 * a killed process leaves no partial migration. It records them as `prisma migrate deploy` does.
 *
 * @returns the names of the applied migrations, oldest first
 * @throws if a migration fails, or the service cannot reach the database
 */
export async function migrate (url: string): Promise<string[]> {
  const database = databaseOf(url)
  const session = await openMigrationSession(url)
  const applied: string[] = []
  try {
    while ((await pendingIn(session, database)).length > 0) {
      await session.begin()
      // Another process may have migrated before the lock was this one's.
      const [next] = await pendingIn(session, database)
      if (next !== undefined) applied.push(await apply(session, database, next))
      else await session.script('ROLLBACK')
    }
  } finally {
    await session.close()
  }
  return applied
}

/** Applies a migration and commits. @returns its name */
async function apply (session: MigrationSession, database: DatabaseName, name: string): Promise<string> {
  const script = await readFile(`${migrationsFolder(database)}/${name}/migration.sql`, 'utf8')
  const now = (): string => `'${new Date().toISOString()}'`
  const id = randomUUID()
  try {
    await session.script(createHistory(TIME[database]))
    // An unfinished migration has changed nothing: it failed, or its process was killed.
    await session.script(`
      UPDATE _prisma_migrations SET rolled_back_at = ${now()} WHERE finished_at IS NULL AND rolled_back_at IS NULL;
      INSERT INTO _prisma_migrations (id, checksum, migration_name, started_at, applied_steps_count)
      VALUES ('${id}', '${createHash('sha256').update(script).digest('hex')}', '${name}', ${now()}, 1)`)
    await session.script(script)
    await session.script(`UPDATE _prisma_migrations SET finished_at = ${now()} WHERE id = '${id}'`)
    await session.commit()
  } catch (error) {
    // It fails if the connection is lost, or SQLite has rolled back by itself.
    await session.script('ROLLBACK').catch(() => {})
    throw new Error(`The migration ${name} failed: ${(error as Error).message}`, { cause: error })
  }
  return name
}

function createHistory (type: string): string {
  return `
    CREATE TABLE IF NOT EXISTS _prisma_migrations (
      id                  VARCHAR(36)  NOT NULL PRIMARY KEY,
      checksum            VARCHAR(64)  NOT NULL,
      finished_at         ${type},
      migration_name      VARCHAR(255) NOT NULL,
      logs                TEXT,
      rolled_back_at      ${type},
      started_at          ${type}      NOT NULL DEFAULT current_timestamp,
      applied_steps_count INTEGER      NOT NULL DEFAULT 0
    )`
}
