// `npm test`: runs the suite with tap, on SQLite and on a PostgreSQL server that it starts.
//
//   npm test -- test/pets test/cli/cli.test.ts  some files and folders
//   DATABASE=postgresql npm test                on one database: sqlite or postgresql
//
// `npx tap test/pets/pets.test.ts` runs a file as well, on SQLite; DATABASE=postgresql works there, too.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, statSync
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { codesThatNoTestMet } from './support/met-errors.ts'
import { startDatabase, type DatabaseName, type TestDatabase } from './support/test-databases.ts'

/** Processes at once: more than there are cores, because tests also wait. */
const JOBS = Number(process.env['JOBS'] ?? 3 * availableParallelism())

/** This file gets a process of its own: it replaces what others load. */
const ALONE = 'test/client/silent-feed.test.ts'

/** Short files that take long. They start first. */
const LONG = [
  'test/torture/torture.test.ts', 'test/database/postgresql/plan-buffers.test.ts', 'test/exam/exam.test.ts',
  'test/fuzz/fuzz.test.ts', 'test/database/postgresql/prepared-statements.test.ts'
]

/** The memory that must be free for the files of tests, which take some 0.2 GB at once. */
const MIN_FREE_BYTES = 1024 ** 3

/** The first line of a test file says so when one database is enough, and why. */
const ONLY = /^\/\/ Only on (SQLite|PostgreSQL): /

const NAMES: Record<DatabaseName, string> = { sqlite: 'SQLite', postgresql: 'PostgreSQL' }

const ROOT = join(import.meta.dirname, '..')
process.chdir(ROOT)

const chosen = process.argv.slice(2)
const files = chosen.length === 0 ? filesAt('test') : chosen.flatMap(filesAt)
const folder = mkdtempSync(join(placeForFiles(), 'petstore-test-'))
// A PostgreSQL server that a test starts runs as another account, and must reach its files below this folder.
chmodSync(folder, 0o711)
const records = join(folder, 'errors')
mkdirSync(records)

/** Those of tests, which end with this one. */
const processes = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    for (const queue of queues) queue.files = []
    for (const child of processes) child.kill(signal)
  })
}

interface Queue {
  database: DatabaseName
  files: string[]
  /** The number of its processes. */
  processes: number
}

/** The files that no process has run yet, on each database. */
const queues = databases().map((database): Queue => ({ database, files: inOrder(database), processes: 0 }))

let passed = 0
const failures: string[] = []
const servers: TestDatabase[] = []
try {
  await runTests()
  // A part of the suite meets a part of the errors.
  if (chosen.length === 0 && process.env['DATABASE'] === undefined) {
    failures.push(...codesThatNoTestMet(records).map((code) => `no test met the error code ${code}`))
  }
} finally {
  for (const { stop } of servers) await stop()
  // Tests that were killed leave their files here, too.
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
if (passed + failures.length === 0) failures.push('no test ran')
for (const failure of failures) console.log(`✖ ${failure}`)
console.log(`\n${passed} passed, ${failures.length} failed`)
process.exitCode = failures.length > 0 ? 1 : 0

/**
 * Returns where the files of tests are: in memory, if Linux has room there. Each commit of SQLite waits for a disk, and
 * what databases write to it takes a tenth of the CPU of the suite.
 */
function placeForFiles (): string {
  const memory = '/dev/shm'
  if (process.env['TMPDIR'] !== undefined || !existsSync(memory)) return tmpdir()
  const { bavail, bsize } = statfsSync(memory)
  return bavail * bsize > MIN_FREE_BYTES ? memory : tmpdir()
}

function databases (): DatabaseName[] {
  const { DATABASE: choice = '' } = process.env
  if (choice === 'sqlite' || choice === 'postgresql') return [choice]
  if (choice === '') return ['sqlite', 'postgresql']
  throw new Error('DATABASE must be sqlite or postgresql')
}

/** Lists the test files at a path, which is a file or a folder. test/tools has a command of its own. */
function filesAt (path: string): string[] {
  const file = relative(ROOT, join(ROOT, path))
  if (!existsSync(file)) {
    console.error(`There is no ${path}.`)
    process.exit(2)
  }
  if (!statSync(file).isDirectory()) return [file]
  return readdirSync(file, { recursive: true, encoding: 'utf8' }).map((name) => join(file, name))
    .filter((name) => name.endsWith('.test.ts') && !name.startsWith(join('test', 'tools')))
}

/** Returns the files for a database, those that take longest first. Longer files mostly take longer. */
function inOrder (database: DatabaseName): string[] {
  const rank = (file: string): number => [ALONE, ...LONG].includes(file) ? Infinity : statSync(file).size
  return files.filter((file) => (ONLY.exec(readFileSync(file, 'utf8'))?.[1] ?? NAMES[database]) === NAMES[database])
    .map((file) => ({ file, rank: rank(file) })).sort((a, b) => a.rank === b.rank ? 0 : b.rank - a.rank)
    .map(({ file }) => file)
}

async function runTests (): Promise<void> {
  for (const name of databases()) servers.push(await startDatabase(name, folder))
  const env = Object.assign({}, process.env, ...servers.map(({ settings }) => settings), {
    TEST_ERRORS: records, TMPDIR: folder, FORCE_COLOR: '0', TAP_TIMEOUT: '1800'
  }) as NodeJS.ProcessEnv
  await Promise.all(Array.from({ length: JOBS }, async () => {
    for (let queue = longest(); queue !== undefined; queue = longest()) await runProcess(queue, env)
  }))
}

/** Returns the queue with the most files for each of its processes. */
function longest (): Queue | undefined {
  const share = ({ files, processes }: Queue): number => files.length / (processes + 1)
  return queues.filter(({ files }) => files.length > 0).sort((a, b) => share(b) - share(a))[0]
}

/** Runs files of a queue in one process until none is left, or the process ends. */
async function runProcess (queue: Queue, env: NodeJS.ProcessEnv): Promise<void> {
  // The arguments and the time limit are those of .taprc.
  const program = ['--import=tsx', '--import=./test/support/plain-children.mjs', 'test/support/test-process.ts']
  const child = spawn(process.execPath, program, {
    stdio: ['pipe', 'pipe', 'inherit'], env: { ...env, DATABASE: queue.database }
  })
  // Its end is noticed by its output.
  child.stdin.on('error', () => {})
  processes.add(child)
  queue.processes++
  const ended = once(child, 'close')
  const report = createReport()
  const name = NAMES[queue.database]
  let file = queue.files.shift()
  let last = file
  let hasFailed = false
  child.stdin.write(`${file}\n`)
  for await (const line of createInterface(child.stdout)) {
    if (line !== `# end of ${file}`) {
      report.read(line)
      continue
    }
    if (!report.endFile(`${name} ${file}`)) hasFailed = true
    last = file
    file = [file, queue.files[0]].includes(ALONE) ? undefined : queue.files.shift()
    if (file === undefined) child.stdin.end()
    else child.stdin.write(`${file}\n`)
  }
  const [code, signal] = await ended as [number | null, NodeJS.Signals | null]
  // tap ends a process with 1 after any failure.
  if (file !== undefined || (code !== 0 && !hasFailed)) {
    report.endFile(`${name} ${file ?? last}`, `its process ended with ${signal ?? `code ${code}`}`)
  }
  processes.delete(child)
  queue.processes--
}

interface Report {
  /** Takes a line that tap wrote. */
  read: (line: string) => void
  /** Takes the end of a file, and why it is a failure. @returns whether all its tests passed */
  endFile: (file: string, problem?: string) => boolean
}

/**
 * Reports the output of a process: prints the name of each file, its time beside the others, and what tap wrote about
 * its failures, and counts the tests, which tap ends with their time.
 */
function createReport (): Report {
  /** The output for a file, without the assertions that passed. */
  let lines: string[] = []
  let problems: string[] = []
  let hasResult = false
  let began = performance.now()
  return {
    read (line) {
      const [, indent, not, name, time] = /^(\s*)(not )?ok \d+ - (.*?)( # time=[\d.]+ms.*)?$/.exec(line) ?? []
      if (name !== undefined) hasResult = true
      if (not !== undefined && (time !== undefined || indent === '')) problems.push(name!)
      else if (time !== undefined) passed++
      if (/^\s+1\.\.0$/.test(line)) problems.push(`a test without an assertion: ${lines.at(-1)?.trim()}`)
      if (name === undefined || not !== undefined || / # SKIP/.test(line)) lines.push(line)
    },
    endFile (file, problem = hasResult ? undefined : 'no test ran') {
      if (problem !== undefined) problems.push(problem)
      const shown = problems.length > 0 ? lines : lines.filter((line) => / # SKIP/.test(line))
      const seconds = ((performance.now() - began) / 1_000).toFixed(1)
      console.log([`${problems.length > 0 ? '✖' : '✔'} ${file} (${seconds} s)`, ...shown].join('\n'))
      failures.push(...problems.map((text) => `${file}: ${text}`))
      const isGood = problems.length === 0
      lines = []
      problems = []
      hasResult = false
      began = performance.now()
      return isGood
    }
  }
}
