import { accessSync, constants } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { readConfig, type Config } from '../config.ts'
import { databaseOf } from '../database/dialect.ts'
import { pendingMigrations } from '../database/migrations/history.ts'
import { migratesOnStart } from '../database/migrations/startup-check.ts'
import { openDatabase } from '../database/open-database.ts'
import { checkWritable } from '../database/database.ts'
import { fileOf, isMissing, problemOfFolder } from '../database/sqlite/database-file.ts'
import { openFile } from '../database/sqlite/driver.ts'
import { explainFailure } from '../start/explain-failure.ts'
import { checkProcesses } from '../start/processes.ts'

/** The result of one check. If it failed, the text has the cause and the remedy. */
export interface CheckResult {
  subject: string
  failed?: boolean
  text: string
}

/** Minimum free space on the disk of a SQLite database: enough for its write-ahead log and some growth. */
const MIN_FREE_BYTES = 100 * 2 ** 20

/** The remedy for a missing database and for pending migrations. */
const MIGRATE = 'Run: npx --no petstore migrate'

/** Checks everything that the service needs, without changes. Skips checks that depend on a failed one. */
export async function * runChecks (environment: NodeJS.ProcessEnv): AsyncGenerator<CheckResult> {
  yield { subject: 'Node', text: process.versions.node }

  let config: Config
  try {
    config = readConfig(environment)
    checkProcesses(config)
  } catch (error) {
    yield { subject: 'settings', failed: true, text: explainFailure(error) }
    return
  }
  yield { subject: 'settings', text: 'all are valid' }

  const { DATABASE_URL } = config
  if (databaseOf(DATABASE_URL) === 'sqlite') {
    const problem = problemOfFolder(fileOf(DATABASE_URL)) ?? problemOfAccess(DATABASE_URL)
    if (problem !== undefined) {
      yield { subject: 'disk', failed: true, text: problem }
      return
    }
    yield await checkSpace(DATABASE_URL)
  }
  if (isMissing(DATABASE_URL)) {
    yield checkMissing(config)
    return
  }
  yield * checkDatabase(config)
}

/** Returns why this user cannot write the database, with the remedy. */
function problemOfAccess (url: string): string | undefined {
  const folder = dirname(resolve(fileOf(url)))
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    if (!isMissing(url)) accessSync(fileOf(url), constants.W_OK)
    return undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return `this user has no permission to write the database or its folder ${folder} (${code}). ` +
      'Grant it, or set DATABASE_URL to another folder.'
  }
}

async function checkSpace (url: string): Promise<CheckResult> {
  const folder = dirname(resolve(fileOf(url)))
  const { bavail, bsize } = await statfs(folder)
  const freeBytes = bavail * bsize
  const text = `${Math.floor(freeBytes / 2 ** 20)} MB free in ${folder}`
  if (freeBytes >= MIN_FREE_BYTES) return { subject: 'disk', text }
  const remedy = 'Free space there, or set DATABASE_URL to another folder.'
  return { subject: 'disk', failed: true, text: `only ${text}. ${remedy}` }
}

/** Checks whether a start can create the database. Only one in memory shows that Node has SQLite, without a file. */
function checkMissing (config: Config): CheckResult {
  try {
    openFile(':memory:').close()
  } catch (error) {
    return { subject: 'database', failed: true, text: explainFailure(error) }
  }
  return migratesOnStart(config)
    ? { subject: 'database', text: 'it does not exist yet; the service creates it when it starts' }
    : { subject: 'database', failed: true, text: `${fileOf(config.DATABASE_URL)} does not exist. ${MIGRATE}` }
}

async function * checkDatabase (config: Config): AsyncGenerator<CheckResult> {
  const { DATABASE_URL } = config
  let pending: string[]
  try {
    pending = await pendingMigrations(DATABASE_URL)
  } catch (error) {
    yield { subject: 'database', failed: true, text: explainFailure(error) }
    return
  }
  yield { subject: 'database', text: `connected to ${databaseOf(DATABASE_URL)}` }
  if (pending.length > 0) {
    const list = `${pending.length} pending: ${pending.join(', ')}`
    yield migratesOnStart(config)
      ? { subject: 'migrations', text: `${list}; the service applies them when it starts` }
      : { subject: 'migrations', failed: true, text: `${list}. ${MIGRATE}` }
    return
  }
  yield { subject: 'migrations', text: 'all are applied' }
  yield await checkWriteAccess(config)
}

async function checkWriteAccess (config: Config): Promise<CheckResult> {
  const { DATABASE_URL: url, DATABASE_POOL: pool, REQUEST_TIMEOUT_MS: timeout } = config
  const database = await openDatabase({ url, pool, timeout })
  try {
    await checkWritable(database)
    return { subject: 'writing', text: 'the database is writable' }
  } catch (error) {
    return { subject: 'writing', failed: true, text: explainFailure(error) }
  } finally {
    await database.close()
  }
}
