import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { FileResults } from './results.ts'
import { runTestFiles } from './run-files.ts'

/** What a test file prints that has one subtest with one assertion. */
const ONE_TEST = [
  'TAP version 14',
  '# Subtest: it works',
  '    ok 1 - fine',
  '    1..1',
  'ok 1 - it works',
  '1..1'
]

function writeFile (t: Test, source: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-runner-'))
  t.teardown(() => { rmSync(folder, { recursive: true, force: true }) })
  const file = join(folder, 'some.test.mjs')
  writeFileSync(file, source)
  return file
}

async function run (file: string, stop = new AbortController().signal): Promise<FileResults> {
  return await runTestFiles([file], [file], {}, stop)
}

function printing (lines: string[]): string {
  return `console.log(${JSON.stringify(lines.join('\n'))})\n`
}

const FAILING_FILES: Record<string, [source: string, problem: RegExp]> = {
  'prints no TAP': ['', /without an assertion/],
  'has a test without an assertion': [
    printing(['# Subtest: idle', '    1..0', 'ok 1 - idle', '1..1']),
    /without an assertion/
  ],
  'has a failed assertion': [
    printing(['# Subtest: wrong', '    not ok 1 - sum', '    1..1', 'not ok 1 - wrong', '1..1']),
    /wrong/
  ],
  'ends before its plan': [`${printing(ONE_TEST.slice(0, -1))}process.exit(0)`, /no plan/i],
  'ends with an error after its last test': [`${printing(ONE_TEST)}process.exitCode = 7`, /ended with code 7/],
  'is ended by a signal': [`${printing(ONE_TEST)}process.kill(process.pid, 'SIGKILL')`, /ended with SIGKILL/],
  'bails out': [printing([...ONE_TEST.slice(0, -1), 'Bail out! no disk']), /no disk/]
}

t.test('a file that passes is counted', async (t) => {
  const { counts, report } = await run(writeFile(t, printing(ONE_TEST)))
  t.match(counts, { passed: 1, failed: 0, skipped: 0, assertions: 1, failures: [] })
  t.same(report, [])
})

t.test('a skipped test is reported with its reason', async (t) => {
  const lines = ['ok 1 - later # SKIP no browser', ...ONE_TEST.slice(1, 4), 'ok 2 - it works', '1..2']
  const { counts, report } = await run(writeFile(t, printing(lines)))
  t.match(counts, { passed: 1, failed: 0, skipped: 1 })
  t.match(report, [/later: no browser/])
})

t.test('a file fails that', { timeout: 300_000 }, async (t) => {
  const runs = Object.entries(FAILING_FILES).map(async ([name, [source, problem]]) =>
    ({ name, problem, ...await run(writeFile(t, source)) }))
  for (const { name, problem, counts, report } of await Promise.all(runs)) {
    await t.test(name, async (t) => {
      t.ok(counts.failed > 0)
      t.match(report.join('\n'), problem)
    })
  }
})

t.test('the end of the run ends the file and the processes of its group', async (t) => {
  const stop = new AbortController()
  const file = writeFile(
    t,
    "import { spawn } from 'node:child_process'\nspawn('sleep', ['600'], { stdio: 'inherit' })\n" +
      'setInterval(() => {}, 1000)'
  )
  const running = run(file, stop.signal)
  setTimeout(() => { stop.abort() }, 2_000)
  const { counts } = await running
  t.ok(counts.failed > 0)
})
