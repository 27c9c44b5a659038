import { join } from 'node:path'
import pg from 'pg'
import { migrate } from '../../src/database/migrations/migrate.ts'
import { startPostgres } from './postgres.ts'

export type DatabaseName = 'sqlite' | 'postgresql'

export const POSTGRES_TEMPLATE = 'petstore_template'

/** A database that test files can use. */
export interface TestDatabase {
  /** Environment variables that name it to a test file. */
  settings: { DATABASE: DatabaseName, TEST_SQLITE_TEMPLATE?: string, TEST_POSTGRES_URL?: string }
  stop: () => Promise<void>
}

/** Prepares a migrated template in a folder, or on a new server. Each test copies it. */
export async function startDatabase (name: DatabaseName, folder: string): Promise<TestDatabase> {
  if (name === 'sqlite') {
    const template = join(folder, 'template.db')
    await migrate(`file:${template}`)
    return { settings: { DATABASE: name, TEST_SQLITE_TEMPLATE: template }, stop: async () => {} }
  }
  // Without syncs, creating and deleting the database of each test is cheaper. A killed server still loses nothing,
  // because the system keeps what was written; the torture scenario `durability` counts syncs on a server of its own.
  const server = await startPostgres({ fsync: 'off', full_page_writes: 'off' })
  try {
    await makePostgresTemplate(server.url)
  } catch (error) {
    await server.stop()
    throw error
  }
  return { settings: { DATABASE: name, TEST_POSTGRES_URL: server.url }, stop: server.stop }
}

/** Creates the database on a new server that each test copies. */
export async function makePostgresTemplate (serverUrl: string): Promise<void> {
  await onServer(serverUrl, `CREATE DATABASE ${POSTGRES_TEMPLATE}`)
  await migrate(databaseUrl(serverUrl, POSTGRES_TEMPLATE))
}

const pools = new Map<string, pg.Pool>()

/** Runs a statement on the maintenance database of a server. Its connection ends when it is idle. */
export async function onServer (serverUrl: string, sql: string): Promise<void> {
  let pool = pools.get(serverUrl)
  if (pool === undefined) {
    pool = new pg.Pool({ connectionString: serverUrl, allowExitOnIdle: true })
    // The server may end first.
    pool.on('error', () => {})
    pools.set(serverUrl, pool)
  }
  await pool.query(sql)
}

export function databaseUrl (serverUrl: string, name: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}
