import { randomBytes } from 'node:crypto'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { migrate } from '../../src/database/migrations/migrate.ts'

const POSTGRES_TEMPLATE = 'petstore_template'

/** The part of a tap test that this file uses. */
interface Teardown {
  teardown: (action: () => unknown) => void
}

/** The database of this process. The runner sets it; a file that runs without the runner uses SQLite. */
export const database = process.env['TEST_DATABASE'] === 'postgresql' ? 'postgresql' : 'sqlite'

/** Creates a migrated database without rows for a test. It is deleted when the test ends. @returns its URL */
export async function freshDatabase (t: Teardown): Promise<string> {
  return database === 'sqlite' ? sqliteFile(t, await sqliteTemplate()) : await postgresDatabase(t, POSTGRES_TEMPLATE)
}

/** Creates a database without migrations: an empty one, or the name of a file that does not exist yet. */
export async function emptyDatabase (t: Teardown): Promise<string> {
  return database === 'sqlite' ? sqliteFile(t) : await postgresDatabase(t, 'template1')
}

/** Creates the database on a new server that `freshDatabase` copies. */
export async function makePostgresTemplate (serverUrl: string): Promise<void> {
  await onServer(serverUrl, `CREATE DATABASE ${POSTGRES_TEMPLATE}`)
  await migrate(databaseUrl(serverUrl, POSTGRES_TEMPLATE))
}

let ownTemplate: Promise<string> | undefined

/** Returns the runner's template, or creates one for this process. */
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
  const folder = mkdtempSync(join(tmpdir(), 'petstore-'))
  t.teardown(() => { rmSync(folder, { recursive: true, force: true }) })
  const file = join(folder, 'petstore.db')
  if (template !== undefined) copyFileSync(template, file)
  return `file:${file}`
}

async function postgresDatabase (t: Teardown, template: string): Promise<string> {
  const serverUrl = process.env['TEST_POSTGRES_URL']
  if (serverUrl === undefined) {
    throw new Error('No PostgreSQL: run this test with `DATABASE=postgresql npm test -- <file>`')
  }
  const name = `petstore_${randomBytes(6).toString('hex')}`
  await onServer(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template}`)
  t.teardown(async () => { await onServer(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`) })
  return databaseUrl(serverUrl, name)
}

async function onServer (serverUrl: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

function databaseUrl (serverUrl: string, name: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}
