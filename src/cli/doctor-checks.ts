import { accessSync, constants, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { readConfig, type Config } from '../config.ts'
import { databaseOf } from '../database/dialect.ts'
import { pendingMigrations } from '../database/migrations/migrate.ts'
import { canWrite, openDatabase } from '../database/open-database.ts'
import { fileOf, isMissing, migratesOnStart } from '../database/migrations/startup-check.ts'
import { explainFailure } from '../start/explain-failure.ts'

/** One thing that was looked at: how it is, or what is wrong with it and what to do. */
export interface Finding {
  subject: string
  wrong?: boolean
  says: string
}

/** Less than this much room on the disk of a SQLite database is wrong, in bytes. */
const LEAST_ROOM = 100 * 2 ** 20

/** Looks at all that the service needs, without changing or creating anything. What cannot be looked at is left out. */
export async function * runChecks (environment: NodeJS.ProcessEnv): AsyncGenerator<Finding> {
  yield { subject: 'Node', says: process.versions.node }

  let config: Config
  try {
    config = readConfig(environment)
  } catch (error) {
    yield { subject: 'settings', wrong: true, says: explainFailure(error) }
    return
  }
  yield { subject: 'settings', says: 'all of them can be read' }

  const { DATABASE_URL } = config
  if (databaseOf(DATABASE_URL) === 'sqlite') yield * examineDisk(DATABASE_URL)
  if (isMissing(DATABASE_URL)) {
    yield migratesOnStart(config)
      ? { subject: 'database', says: 'none is there yet; the start creates it' }
      : { subject: 'database', wrong: true, says: `there is no ${fileOf(DATABASE_URL)}. Create it with: npx --no petstore migrate` }
    return
  }
  yield * examineDatabase(config)
}

async function * examineDisk (url: string): AsyncGenerator<Finding> {
  const folder = dirname(resolve(fileOf(url)))
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    if (!isMissing(url)) accessSync(fileOf(url), constants.W_OK)
    const { bavail, bsize } = await statfs(folder)
    const room = `${Math.floor(bavail * bsize / 2 ** 20)} MB free in ${folder}`
    const enough = bavail * bsize >= LEAST_ROOM
    yield { subject: 'disk', wrong: !enough, says: enough ? room : `only ${room}. Make room there, or set DATABASE_URL to another folder.` }
  } catch (error) {
    yield {
      subject: 'disk',
      wrong: true,
      says: statSync(folder, { throwIfNoEntry: false }) === undefined
        ? `there is no folder ${folder}. Create it, or set DATABASE_URL to another.`
        : `this account may not write the database or its folder ${folder} (${(error as NodeJS.ErrnoException).code}). Allow it, or set DATABASE_URL to another.`
    }
  }
}

async function * examineDatabase (config: Config): AsyncGenerator<Finding> {
  const { DATABASE_URL, DATABASE_POOL, REQUEST_TIMEOUT_MS } = config
  let pending: string[]
  try {
    pending = await pendingMigrations(DATABASE_URL)
  } catch (error) {
    yield { subject: 'database', wrong: true, says: explainFailure(error) }
    return
  }
  yield { subject: 'database', says: `${databaseOf(DATABASE_URL)} answers` }
  if (pending.length > 0) {
    const missing = `${pending.length} pending: ${pending.join(', ')}`
    yield migratesOnStart(config)
      ? { subject: 'migrations', says: `${missing}; the start applies them` }
      : { subject: 'migrations', wrong: true, says: `${missing}. Apply them with: npx --no petstore migrate` }
    return
  }
  yield { subject: 'migrations', says: 'all are applied' }

  const database = await openDatabase({ url: DATABASE_URL, pool: DATABASE_POOL, timeout: REQUEST_TIMEOUT_MS })
  try {
    await canWrite(database)
    yield { subject: 'writing', says: 'is allowed' }
  } catch (error) {
    yield { subject: 'writing', wrong: true, says: explainFailure(error) }
  } finally {
    await database.close()
  }
}
