import { randomBytes } from 'node:crypto'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { migrate } from '../../src/database/migrations/migrate.ts'
import { databaseUrl, onServer, POSTGRES_TEMPLATE, startDatabase, type DatabaseName } from './test-databases.ts'

/** The part of a tap test that this file uses. */
interface Teardown {
  teardown: (action: () => unknown) => void
}

/** The database of this process. */
export const database: DatabaseName = process.env['DATABASE'] === 'postgresql' ? 'postgresql' : 'sqlite'

/** Returns whether Node has a SQLite of its own that can run the statements of the service. */
export function hasOwnSqlite (): boolean {
  const sqlite = process.getBuiltinModule('node:sqlite') as typeof import('@photostructure/sqlite') | undefined
  try {
    new sqlite!.DatabaseSync(':memory:').prepare("SELECT * FROM jsonb_each('[]')")
    return true
  } catch {
    return false
  }
}

let ownServer: Promise<string> | undefined

/** Returns the URL of the suite's PostgreSQL server. A file that runs without the suite starts a server of its own. */
export async function postgresServer (): Promise<string> {
  const { TEST_POSTGRES_URL: given } = process.env
  if (given !== undefined) return given
  ownServer ??= startDatabase('postgresql', tmpdir()).then(({ settings, stop }) => {
    t.teardown(stop)
    return settings.TEST_POSTGRES_URL!
  })
  return await ownServer
}

/** Creates a migrated database without rows for a test. It is deleted when the test ends. @returns its URL */
export async function freshDatabase (t: Teardown): Promise<string> {
  return database === 'sqlite' ? sqliteFile(t, await sqliteTemplate()) : await postgresDatabase(t, POSTGRES_TEMPLATE)
}

/** Creates a database without migrations: an empty one, or the name of a file that does not exist yet. */
export async function emptyDatabase (t: Teardown): Promise<string> {
  return database === 'sqlite' ? sqliteFile(t) : await postgresDatabase(t, 'template1')
}

let ownTemplate: Promise<string> | undefined

/** Returns the template of the suite, or creates one for this process. */
async function sqliteTemplate (): Promise<string> {
  ownTemplate ??= (async () => {
    const given = process.env['TEST_SQLITE_TEMPLATE']
    if (given !== undefined) return given
    const folder = mkdtempSync(join(tmpdir(), 'petstore-template-'))
    process.on('exit', () => { rmSync(folder, { recursive: true, force: true }) })
    const file = join(folder, 'template.db')
    await migrate(`file:${file}`)
    return file
  })()
  return await ownTemplate
}

function sqliteFile (t: Teardown, template?: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-database-'))
  t.teardown(() => { rmSync(folder, { recursive: true, force: true }) })
  const file = join(folder, 'petstore.db')
  if (template !== undefined) copyFileSync(template, file)
  return `file:${file}`
}

async function postgresDatabase (t: Teardown, template: string): Promise<string> {
  const serverUrl = await postgresServer()
  const name = `petstore_${randomBytes(6).toString('hex')}`
  // The default writes all pages to the write-ahead log as well, which takes twice the CPU of this copy.
  await onServer(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`)
  t.teardown(async () => { await onServer(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`) })
  return databaseUrl(serverUrl, name)
}
