// `npm test`: the whole suite on SQLite, and again on a real PostgreSQL that is started for it.
//
//   npm test -- test/pets/pets.test.ts                     some files, on both
//   DATABASE=postgresql npm test -- test/pets/pets.test.ts  on one (sqlite, postgresql)

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startPostgres } from './support/postgres.ts'
import { Results, add, noCounts, summary, type Counts } from './support/results.ts'

const TAP = fileURLToPath(new URL('../node_modules/tap/dist/esm/run.mjs', import.meta.url))

const suites = {
  sqlite: { name: 'SQLite', run: onSqlite },
  postgresql: { name: 'PostgreSQL', run: onPostgres }
}

const stopped = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => { stopped.abort() })

const files = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'petstore-test-'))
// Not readable to others, but open on the way: a test may start a PostgreSQL, which runs as another account.
chmodSync(folder, 0o711)
const total = noCounts()
const report: string[] = []

try {
  for (const { name, run } of chosenSuites()) {
    console.log(`\n${name}\n`)
    const counts = await run().catch((error: unknown) => broken(error instanceof Error ? error.message : String(error)))
    add(total, counts)
    report.push(...counts.failures.map((failure) => `✖ ${name}: ${failure}`), `${name}: ${summary(counts)}`)
  }
} finally {
  // Tests that were killed have left their own files here, too.
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
console.log(`\n${report.join('\n')}\n\n${total.passed} passed, ${total.failed} failed`)
process.exitCode = total.failed > 0 ? 1 : 0

function chosenSuites (): Array<typeof suites[keyof typeof suites]> {
  const choice = process.env['DATABASE'] ?? ''
  if (choice === '') return Object.values(suites)
  if (choice === 'sqlite' || choice === 'postgresql') return [suites[choice]]
  return [{ name: choice, run: async () => broken('DATABASE must be sqlite or postgresql') }]
}

async function onSqlite (): Promise<Counts> {
  const { migrate } = await import('../src/database/migrations/migrate.ts')
  const template = join(folder, 'template.db')
  await migrate(`file:${template}`)
  return await runTap({ TEST_DATABASE: 'sqlite', TEST_SQLITE_TEMPLATE: template })
}

async function onPostgres (): Promise<Counts> {
  const { makePostgresTemplate } = await import('./support/database.ts')
  const server = await startPostgres()
  try {
    await makePostgresTemplate(server.url)
    return await runTap({ TEST_DATABASE: 'postgresql', TEST_POSTGRES_URL: server.url })
  } finally {
    await server.stop()
  }
}

async function runTap (settings: Record<string, string>): Promise<Counts> {
  const tap = spawn(process.execPath, [TAP, '--reporter=tap', ...files], {
    env: { ...process.env, ...settings, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
    // A process group of its own: tap would wait for its tests to end, this stops them with it.
    detached: process.platform !== 'win32'
  })
  stopped.signal.addEventListener('abort', () => { killGroup(tap) })
  const results = new Results()
  tap.stdout.pipe(results)
  const [[code, signal]] = await Promise.all([once(tap, 'close'), once(results, 'complete')])

  if (stopped.signal.aborted) return broken('interrupted')
  const { total } = results
  if (total.failed > 0) return total
  if (total.passed === 0) return broken('no test ran')
  if (code !== 0 || !results.ok) add(total, broken(`tap ended with ${signal ?? `code ${code}`}, see above`))
  return total
}

function killGroup ({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
}

/** A suite that could not run is one failure. */
function broken (message: string): Counts {
  console.error(`✖ ${message}`)
  return { ...noCounts(), failed: 1, failures: [message] }
}
