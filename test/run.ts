// `npm test`: runs the suite with tap, on SQLite and on a PostgreSQL server that it starts.
//
//   npm test -- test/pets test/cli/cli.test.ts  some files and folders
//   DATABASE=postgresql npm test                on one database: sqlite or postgresql
//
// `npx tap test/pets/pets.test.ts` runs a file as well, on SQLite; DATABASE=postgresql works there, too.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { codesThatNoTestMet } from './support/met-errors.ts'
import { startDatabase, type DatabaseName, type TestDatabase } from './support/test-databases.ts'

/** Processes at once: more than there are cores, because tests also wait. */
const JOBS = Number(process.env['JOBS'] ?? 2 * availableParallelism() + 1)

/**
 * The fewest files that one process runs, one after the other: to load tap, tsx and the service takes it 2 s, which is
 * most of the time of a short file.
 */
const FILES_PER_PROCESS = 6

/** Files that get a process of their own, which starts first: long ones, and one that replaces what others load. */
const OWN_PROCESS = [
  'test/torture/torture.test.ts', 'test/database/postgresql/plan-buffers.test.ts', 'test/client/silent-feed.test.ts',
  'test/exam/exam.test.ts'
]

/** The first line of a test file says so when one database is enough, and why. */
const ONLY = /^\/\/ Only on (SQLite|PostgreSQL): /

const NAMES: Record<DatabaseName, string> = { sqlite: 'SQLite', postgresql: 'PostgreSQL' }

const ROOT = join(import.meta.dirname, '..')
process.chdir(ROOT)

const chosen = process.argv.slice(2)
const files = chosen.length === 0 ? filesAt('test') : chosen.flatMap(filesAt)
const folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
// A PostgreSQL server that a test starts runs as another account, and must reach its files below this folder.
chmodSync(folder, 0o711)
const records = join(folder, 'errors')
mkdirSync(records)

/** What ends with this process. */
let tap: ChildProcess | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => { tap?.kill(signal) })

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

async function runTests (): Promise<void> {
  for (const name of databases()) servers.push(await startDatabase(name, folder))
  const env = Object.assign({}, process.env, ...servers.map(({ settings }) => settings), {
    TEST_ERRORS: records, TMPDIR: folder, FORCE_COLOR: '0'
  }) as NodeJS.ProcessEnv
  const program = ['node_modules/tap/dist/esm/run.mjs', '--reporter=tap', `--jobs=${JOBS}`, ...writePrograms()]
  tap = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'], env })
  const ended = once(tap, 'close')
  const report = createReport()
  for await (const line of createInterface(tap.stdout!)) report(line)
  const [code] = await ended as [number | null]
  if (code !== 0 && failures.length === 0) failures.push('tap failed')
}

/** Writes a program for each group of files on a database, and returns the paths. */
function writePrograms (): string[] {
  rmSync('.tap/groups', { recursive: true, force: true })
  mkdirSync('.tap/groups', { recursive: true })
  return databases().flatMap((database) => {
    const name = NAMES[database]
    const fitting = files.filter((file) => (ONLY.exec(readFileSync(file, 'utf8'))?.[1] ?? name) === name)
    const groups = fitting.filter((file) => OWN_PROCESS.includes(file)).map((file) => [file])
    let left = fitting.filter((file) => !OWN_PROCESS.includes(file))
    // Each group is a share of the files that are left: the last groups are small, and end at similar times. Its files
    // are apart from each other, because those of a folder are often alike.
    while (left.length > 0) {
      const parts = Math.max(1, Math.min(JOBS, Math.floor(left.length / FILES_PER_PROCESS)))
      groups.push(left.filter((_, i) => i % parts === 0))
      left = left.filter((_, i) => i % parts !== 0)
    }
    return groups.map((group, i) => {
      // tap runs them in the order of their names: those that take longest first.
      const program = `.tap/groups/${String(i).padStart(2, '0')}-${database}.mjs`
      const lines = group.map((file) => `t.comment('file ${name} ${file}')\nawait import('../../${file}')\n`)
      writeFileSync(program, `import t from 'tap'\nprocess.env.DATABASE = '${database}'\n${lines.join('')}`)
      return program
    })
  })
}

/**
 * Returns a function for the lines that tap writes. It prints the name of each file, and what tap wrote about its
 * failures, and counts the tests, which tap ends with their time.
 */
function createReport (): (line: string) => void {
  let file = ''
  /** The output for a file, without the assertions that passed. */
  let lines: string[] = []
  let hasResult = false
  let hasFailed = false
  let hasGroupFailed = false
  const end = (): void => {
    if (file !== '' && !hasResult) fail('no test ran')
    const shown = hasFailed ? lines : lines.filter((line) => / # SKIP/.test(line))
    if (file !== '') console.log([`${hasFailed ? '✖' : '✔'} ${file}`, ...shown].join('\n'))
    lines = []
    hasResult = hasFailed = false
  }
  const fail = (reason: string): void => {
    failures.push(`${file}: ${reason}`)
    hasFailed = hasGroupFailed = true
  }
  return (line) => {
    const [, next] = /^\s*# file (\S+ \S+)$/.exec(line) ?? []
    const [, indent, not, name, time] = /^(\s*)(not )?ok \d+ - (.*?)( # time=[\d.]+ms.*)?$/.exec(line) ?? []
    if (indent !== undefined && indent !== '') hasResult = true
    if (next !== undefined) {
      end()
      file = next
    } else if (indent === '') {
      // It may have ended without a result of its last test.
      if (not !== undefined && !hasGroupFailed) fail(`${name} failed`)
      end()
      file = ''
      hasGroupFailed = false
    } else if (name !== undefined && time !== undefined) {
      if (not === undefined) passed++
      else fail(name)
    } else if (/^\s*1\.\.0$/.test(line)) fail(`a test without an assertion: ${lines.at(-1)?.trim()}`)
    if (name === undefined || not !== undefined || / # SKIP/.test(line)) lines.push(line)
  }
}
