import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DatabaseName } from './databases.ts'

export interface Job {
  /** The path from the project's root, with slashes. */
  file: string
  database: DatabaseName
}

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Files and folders that run on SQLite only, because no assertion depends on the database. They run on PostgreSQL
 * when `DATABASE=postgresql` asks for it.
 */
const DATABASE_INDEPENDENT: Record<string, string> = {
  'test/architecture': 'reads the imports of src',
  'test/cli/keys.test.ts': 'checks options and output; the accounts tests check the statements on both databases',
  'test/cli/package.test.ts': 'installs the package',
  'test/cli/readme.test.ts': 'runs commands of the README, which are for SQLite',
  'test/config.test.ts': 'reads settings',
  'test/deliveries/address-policy.test.ts': 'calls a pure function',
  'test/deliveries/http-client.test.ts': 'calls a receiver without a database',
  'test/deliveries/retry-policy.test.ts': 'calls a pure function',
  'test/docs': 'runs commands and samples of the pages over HTTP',
  'test/events/rules.test.ts': 'calls a pure function',
  'test/home': 'drives the first page in a browser, over HTTP',
  'test/http/validator-compiler.test.ts': 'checks the validation of requests',
  'test/messages/rules.test.ts': 'calls a pure function',
  'test/monitoring/terminal-format.test.ts': 'checks the format of log lines',
  'test/openapi': 'checks the document and its viewer',
  'test/pets/rules.test.ts': 'calls a pure function',
  'test/plugins/client-errors.test.ts': 'sends requests that reach no handler',
  'test/plugins/content-type-parsers.test.ts': 'checks the parsing of bodies',
  'test/plugins/method-not-allowed.test.ts': 'sends requests that reach no handler',
  'test/plugins/rate-limits.test.ts': 'counts requests in memory',
  'test/plugins/request-head.test.ts': 'sends requests that reach no handler',
  'test/runner': 'checks the runner',
  'test/webhooks/readme.test.ts': 'runs a receiver of the README'
}

/** Durations of the longest files in seconds, for a first run. Later runs use what the runner measured. */
const LONG_FILES_S: Record<string, number> = {
  'test/torture/torture.test.ts': 120,
  'test/deliveries/delivery-worker.test.ts': 70,
  'test/deliveries/delivery.test.ts': 60,
  'test/deliveries/rate.test.ts': 60,
  'test/events/event-stream.test.ts': 50,
  'test/fuzz/fuzz.test.ts': 45,
  'test/deliveries/retries.test.ts': 40,
  'test/start/start.test.ts': 40,
  'test/cli/cli.test.ts': 35,
  'test/cli/seed.test.ts': 30,
  'test/cli/studio.test.ts': 30,
  'test/cli/package.test.ts': 30,
  'test/openapi/viewer-routes.test.ts': 25,
  'test/home/journey.test.ts': 25,
  'test/start/explain-failure.test.ts': 25,
  'test/config.test.ts': 20
}

const SHORT_FILE_S = 8

/** Keeps the measured durations between runs. Git ignores its folder. */
const DURATIONS_FILE = join(ROOT, '.tap/durations.json')

/** Fails when an entry names nothing: a file that moved would silently run on both databases. */
function checkIndependentFiles (): void {
  const missing = Object.keys(DATABASE_INDEPENDENT).filter((path) => !existsSync(join(ROOT, path)))
  if (missing.length > 0) { throw new Error(`DATABASE_INDEPENDENT in test/runner/jobs.ts names ${missing.join(', ')}, which does not exist`) }
}

/** Lists the jobs, longest first, so that no long file starts when all others have ended. */
export function planJobs (paths: string[], databases: DatabaseName[]): Job[] {
  checkIndependentFiles()
  const files = paths.length === 0 ? testFilesBelow('test') : paths.flatMap(testFilesAt)
  const jobs = [...new Set(files)].flatMap((file) =>
    databasesOf(file, databases).map((database) => ({ file, database }))
  )
  const durations = readDurations()
  return jobs.sort((a, b) => expectedDuration(b, durations) - expectedDuration(a, durations))
}

function databasesOf (file: string, databases: DatabaseName[]): DatabaseName[] {
  const independent = Object.keys(DATABASE_INDEPENDENT).some((path) => file === path || file.startsWith(`${path}/`))
  return independent ? databases.slice(0, 1) : databases
}

function testFilesAt (path: string): string[] {
  const file = relative(ROOT, path).split(sep).join('/')
  if (!existsSync(join(ROOT, file))) throw new Error(`${path} does not exist`)
  return statSync(join(ROOT, file)).isDirectory() ? testFilesBelow(file) : [file]
}

function testFilesBelow (folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `${folder}/${name.split(sep).join('/')}`)
    .sort()
}

type Durations = Record<string, number>

function expectedDuration (job: Job, durations: Durations): number {
  return durations[keyOf(job)] ?? LONG_FILES_S[job.file] ?? SHORT_FILE_S
}

function keyOf ({ file, database }: Job): string {
  return `${file} ${database}`
}

function readDurations (): Durations {
  try {
    return JSON.parse(readFileSync(DURATIONS_FILE, 'utf8'))
  } catch {
    return {}
  }
}

/** Remembers how long a file took, in seconds, for the order of the next run. */
export function saveDuration (job: Job, seconds: number): void {
  const durations = { ...readDurations(), [keyOf(job)]: Math.round(seconds * 10) / 10 }
  mkdirSync(dirname(DURATIONS_FILE), { recursive: true })
  writeFileSync(DURATIONS_FILE, JSON.stringify(durations, undefined, 2))
}
