import { join } from 'node:path'
import { migrate } from '../../src/database/migrations/migrate.ts'
import { makePostgresTemplate } from '../support/database.ts'
import { startPostgres } from '../support/postgres.ts'

export const DATABASES = { sqlite: 'SQLite', postgresql: 'PostgreSQL' } as const

export type DatabaseName = keyof typeof DATABASES

/** A database that test files can use. */
export interface TestDatabase {
  /** Environment variables that name it to a test file. */
  settings: NodeJS.ProcessEnv
  stop: () => Promise<void>
}

/** Prepares a migrated template in a folder, or on a new server. Each test copies it. */
export async function prepareDatabase (name: DatabaseName, folder: string): Promise<TestDatabase> {
  return name === 'sqlite' ? await prepareSqlite(folder) : await preparePostgres()
}

async function prepareSqlite (folder: string): Promise<TestDatabase> {
  const template = join(folder, 'template.db')
  await migrate(`file:${template}`)
  return { settings: { TEST_DATABASE: 'sqlite', TEST_SQLITE_TEMPLATE: template }, stop: async () => {} }
}

async function preparePostgres (): Promise<TestDatabase> {
  // Without syncs, creating and deleting the database of each test is cheaper. A killed server still loses nothing,
  // because the system keeps what was written; the torture scenario `durability` counts syncs on a server of its own.
  const server = await startPostgres({ fsync: 'off', full_page_writes: 'off' })
  try {
    await makePostgresTemplate(server.url)
  } catch (error) {
    await server.stop()
    throw error
  }
  return { settings: { TEST_DATABASE: 'postgresql', TEST_POSTGRES_URL: server.url }, stop: server.stop }
}
