// `npm test`: runs the whole suite on SQLite and on a real PostgreSQL that it starts. It runs long test files in
// processes of their own and short ones together, several processes at a time, and both databases at once.
//
//   npm test -- test/pets/pets.test.ts test/cli             some files and folders, on both databases
//   DATABASE=postgresql npm test -- test/pets/pets.test.ts  on one database (sqlite, postgresql)
//   JOBS=1 npm test                                         one file at a time

import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleTests, type Bundle } from './runner/bundle.ts'
import { DATABASES, prepareDatabase, type DatabaseName, type TestDatabase } from './runner/databases.ts'
import { planJobs, type Job } from './runner/jobs.ts'
import { collectErrors } from './runner/met-errors.ts'
import { add, noCounts, summary, type Counts } from './runner/results.ts'
import { runTestFiles } from './runner/run-files.ts'

/** One process more than there are cores, because tests also wait: for a browser, a lease, a pause between attempts. */
const JOBS = Number(process.env['JOBS'] ?? availableParallelism() + 1)

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => { stop.abort() })

const folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
// A test can start a PostgreSQL server, which runs as another account and must reach its files below this folder.
chmodSync(folder, 0o711)
const totals = new Map<DatabaseName, Counts>()
const prepared = new Map<DatabaseName, TestDatabase>()
const errors = collectErrors(folder)
let bundle: Bundle | undefined
/** Failures that belong to no test file. */
const suiteFailures: string[] = []

try {
  await runSuite()
  // A part of the suite meets a part of the errors.
  if (process.argv.length === 2 && !stop.signal.aborted) reportErrors()
} catch (error) {
  suiteFailures.push(error instanceof Error ? error.message : String(error))
} finally {
  for (const { stop } of prepared.values()) await stop()
  // Tests that were killed leave their files here, too.
  for (const left of [folder, bundle?.folder]) {
    if (left !== undefined) rmSync(left, { recursive: true, force: true, maxRetries: 3 })
  }
}
process.exitCode = printTotals() > 0 ? 1 : 0

async function runSuite (): Promise<void> {
  const databases = chooseDatabases()
  const jobs = planJobs(process.argv.slice(2), databases)
  const tests = bundle = await bundleTests([...new Set(jobs.flatMap(({ files }) => files))])
  await Promise.all(databases.map(async (name) => {
    if (!jobs.some(({ database }) => database === name)) return
    totals.set(name, noCounts())
    prepared.set(name, await prepareDatabase(name, folder))
  }))
  await Promise.all(Array.from({ length: JOBS }, async () => {
    for (let job = jobs.shift(); job !== undefined && !stop.signal.aborted; job = jobs.shift()) await runJob(job, tests)
  }))
  if (stop.signal.aborted) suiteFailures.push('interrupted')
}

async function runJob (job: Job, tests: Bundle): Promise<void> {
  const began = performance.now()
  const settings = { ...prepared.get(job.database)!.settings, ...errors.settings, TMPDIR: folder }
  const { counts, report } = await runTestFiles(job.files, tests.argumentsFor(job.files), settings, stop.signal)
  if (stop.signal.aborted) return
  const seconds = (performance.now() - began) / 1000
  const mark = counts.failed > 0 ? '✖' : '✔'
  console.log(`${mark} ${DATABASES[job.database]} ${job.files.join(' ')}: ${summary(counts)} ${seconds.toFixed(1)} s`)
  for (const line of report) console.log(line)
  add(totals.get(job.database)!, counts)
}

/** Prints the documented errors that no test met. */
function reportErrors (): void {
  const { report, failures } = errors.read()
  console.log(`\n${report.join('\n')}`)
  // A failed test may be the one that meets an error, and some errors come with one database.
  if (totals.size > 1 && [...totals.values()].every(({ failed }) => failed === 0)) suiteFailures.push(...failures)
}

function chooseDatabases (): DatabaseName[] {
  const choice = process.env['DATABASE'] ?? ''
  if (choice === '') return ['sqlite', 'postgresql']
  if (choice === 'sqlite' || choice === 'postgresql') return [choice]
  throw new Error('DATABASE must be sqlite or postgresql')
}

/** Prints the failures and the totals. @returns the number of failures */
function printTotals (): number {
  const total = noCounts()
  console.log()
  for (const [database, counts] of totals) {
    for (const failure of counts.failures) console.log(`✖ ${DATABASES[database]}: ${failure}`)
    add(total, counts)
  }
  if (total.passed + total.failed === 0 && suiteFailures.length === 0) suiteFailures.push('no test ran')
  for (const failure of suiteFailures) console.log(`✖ ${failure}`)
  for (const [database, counts] of totals) console.log(`${DATABASES[database]}: ${summary(counts)}`)
  const failed = total.failed + suiteFailures.length
  console.log(`\n${total.passed} passed, ${failed} failed`)
  return failed
}
