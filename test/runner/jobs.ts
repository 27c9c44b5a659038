import { existsSync, readdirSync, statSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DatabaseName } from './databases.ts'

/** Test files that one process runs on one database. */
export interface Job {
  /** Paths from the project's root, with slashes. */
  files: string[]
  database: DatabaseName
}

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Files and folders that run on SQLite only, because no assertion depends on the database. They run on PostgreSQL
 * when `DATABASE=postgresql` asks for it.
 */
const DATABASE_INDEPENDENT: Record<string, string> = {
  'test/architecture': 'reads the imports of src',
  'test/cli/cli.test.ts': 'checks options and output; the operations tests check the migrations on both databases',
  'test/cli/keys.test.ts': 'checks options and output; the accounts tests check the statements on both databases',
  'test/cli/package.test.ts': 'installs the package',
  'test/cli/readme.test.ts': 'runs commands of the README, which are for SQLite',
  'test/cli/studio.test.ts': 'drives Prisma Studio in a browser',
  'test/client': 'calls the service over HTTP; no statement decides what a client does',
  'test/config.test.ts': 'reads settings',
  'test/database/group-commit/batches.test.ts': 'calls a pure function',
  'test/database/group-commit/write-queue.test.ts': 'calls pure functions',
  'test/database/sqlite': 'tests the connections to SQLite',
  'test/deliveries/address-policy.test.ts': 'calls a pure function',
  'test/deliveries/http-client.test.ts': 'calls a receiver without a database',
  'test/deliveries/retries.test.ts': 'counts attempts and pauses; the delivery tests run the statements',
  'test/deliveries/retry-policy.test.ts': 'calls a pure function',
  'test/deliveries/unresponsive-receivers.test.ts': 'calls receivers that hang; the delivery tests run the statements',
  'test/docs': 'runs commands and samples of the pages over HTTP',
  'test/events/rules.test.ts': 'calls a pure function',
  'test/generated-clients': 'calls the service over HTTP; no statement decides what a client does',
  'test/home': 'drives the first page in a browser, over HTTP',
  'test/http/content-negotiation.test.ts': 'calls a pure function',
  'test/http/validator-compiler.test.ts': 'checks the validation of requests',
  'test/lab/rules.test.ts': 'calls pure functions',
  'test/messages/rules.test.ts': 'calls a pure function',
  'test/monitoring/logger.test.ts': 'checks log lines',
  'test/monitoring/metrics.test.ts': 'counts requests, batches and deliveries in memory',
  'test/monitoring/terminal-format.test.ts': 'checks the format of log lines',
  'test/openapi': 'checks the document and its viewer',
  'test/pets/rules.test.ts': 'calls a pure function',
  'test/plugins/client-errors.test.ts': 'sends requests that reach no handler',
  'test/plugins/connections.test.ts': 'opens connections to a service without a database',
  'test/plugins/content-type-parsers.test.ts': 'checks the parsing of bodies',
  'test/plugins/graceful-shutdown.test.ts': 'closes connections',
  'test/plugins/headers.test.ts': 'checks header fields, which no statement decides',
  'test/plugins/method-not-allowed.test.ts': 'sends requests that reach no handler',
  'test/plugins/rate-limits.test.ts': 'counts requests in memory',
  'test/plugins/request-head.test.ts': 'sends requests that reach no handler',
  'test/runner': 'checks the runner',
  'test/create-store.test.ts': 'starts services on SQLite',
  'test/start/npm-start.test.ts': 'ends npm start in several ways',
  'test/torture/histories': 'checks the search itself; the scenario runs on both databases',
  'test/webhooks/readme.test.ts': 'runs a receiver of the README'
}

/** Files and folders that run on PostgreSQL only, because their run on PostgreSQL starts a service on SQLite, too. */
const COMPARES_DATABASES: Record<string, string> = {
  'test/start/behind-nginx.test.ts': 'starts two processes, which need PostgreSQL',
  'test/fuzz': 'sends each request to services on both databases and compares the answers'
}

/** Files that run in processes of their own, longest first. The others are short and run several in a process. */
const LONG_FILES = [
  'test/torture/torture.test.ts',
  'test/database/postgresql/plan-buffers.test.ts',
  'test/start/start.test.ts',
  'test/start/npm-start.test.ts',
  'test/deliveries/delivery.test.ts',
  'test/fuzz/fuzz.test.ts',
  'test/deliveries/delivery-worker.test.ts',
  'test/start/erasure.test.ts',
  'test/database/postgresql/few-connections.test.ts',
  'test/events/event-stream.test.ts',
  'test/database/migrations/migrate.test.ts',
  'test/deliveries/retries.test.ts',
  'test/plugins/method-not-allowed.test.ts',
  'test/plugins/request-head.test.ts',
  'test/http/pagination.test.ts',
  'test/cli/cli.test.ts',
  'test/cli/package.test.ts',
  'test/cli/seed.test.ts',
  'test/cli/studio.test.ts',
  'test/home/journey.test.ts',
  'test/openapi/viewers.test.ts',
  'test/openapi/viewer.test.ts',
  'test/start/explain-failure.test.ts',
  'test/generated-clients/generated-clients.test.ts'
]

/** More files would save little time, and could keep one process busy when all others have ended. */
const FILES_PER_PROCESS = 9

/** Fails when an entry names nothing: a file that moved would silently run on both databases, or beside others. */
function checkLists (): void {
  const listed = [...Object.keys(DATABASE_INDEPENDENT), ...Object.keys(COMPARES_DATABASES), ...LONG_FILES]
  const missing = listed.filter((path) => !existsSync(join(ROOT, path)))
  if (missing.length > 0) throw new Error(`test/runner/jobs.ts names ${missing.join(', ')}, which does not exist`)
}

/** Lists the jobs, long ones first, so that no long file starts when all others have ended. */
export function planJobs (paths: string[], databases: DatabaseName[]): Job[] {
  checkLists()
  const files = [...new Set(paths.length === 0 ? testFilesBelow('test') : paths.flatMap(testFilesAt))]
  const long = LONG_FILES.filter((file) => files.includes(file))
  const short = files.filter((file) => !LONG_FILES.includes(file))
  return [
    ...long.flatMap((file) => databasesOf(file, databases).map((database) => ({ files: [file], database }))),
    ...databases.flatMap((database) =>
      inGroups(short.filter((file) => databasesOf(file, databases).includes(database)))
        .map((files) => ({ files, database })))
  ]
}

function inGroups (files: string[]): string[][] {
  const groups: string[][] = []
  for (let i = 0; i < files.length; i += FILES_PER_PROCESS) groups.push(files.slice(i, i + FILES_PER_PROCESS))
  return groups
}

function databasesOf (file: string, databases: DatabaseName[]): DatabaseName[] {
  if (isListed(file, DATABASE_INDEPENDENT)) return databases.slice(0, 1)
  if (isListed(file, COMPARES_DATABASES)) return databases.slice(-1)
  return databases
}

function isListed (file: string, list: Record<string, string>): boolean {
  return Object.keys(list).some((path) => file === path || file.startsWith(`${path}/`))
}

function testFilesAt (path: string): string[] {
  const file = relative(ROOT, path).split(sep).join('/')
  if (!existsSync(join(ROOT, file))) throw new Error(`${path} does not exist`)
  return statSync(join(ROOT, file)).isDirectory() ? testFilesBelow(file) : [file]
}

function testFilesBelow (folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    // Some packages of test/package.json contain their own tests.
    .filter((name) => name.endsWith('.test.ts') && !name.split(sep).includes('node_modules'))
    .map((name) => `${folder}/${name.split(sep).join('/')}`)
    .sort()
}
