// `npm run torture`: attacks the running service, on both databases, and checks what is left of it.
//
//   npm run torture                             everything; allow it an hour
//   npm run torture -- --quick                  short forms, side by side: about a minute; `npm test` runs them too
//   npm run torture -- crash connections        some programs
//   DATABASE=sqlite npm run torture             on one database (sqlite, postgresql)
//
// It exits with 1 when anything was violated.

import { parseArgs } from 'node:util'
import { startPostgres } from '../support/postgres.ts'
import { programs } from './programs.ts'
import { print } from './report.ts'
import { runScenario } from './harness.ts'

const { values: { quick }, positionals } = parseArgs({ options: { quick: { type: 'boolean', default: false } }, allowPositionals: true })
const choice = process.env['DATABASE'] ?? ''
const databases = (['sqlite', 'postgresql'] as const).filter((name) => choice === '' || choice === name)
const unknown = positionals.filter((name) => !(name in programs))
if (databases.length === 0 || unknown.length > 0) {
  console.error(`Programs are ${Object.keys(programs).join(', ')}; DATABASE is sqlite or postgresql.`)
  process.exit(2)
}

/** The short forms mostly wait, and measure no more than a busy machine keeps: they go side by side. */
const LANES = quick ? 3 : 1

let violations = 0
const began = Date.now()
const server = databases.includes('postgresql') ? await startPostgres() : undefined
const waiting = databases.flatMap((database) => Object.entries(programs)
  .filter(([name, { databases, wholeOnly = false }]) =>
    databases.includes(database) && !(quick && wholeOnly) && (positionals.length === 0 || positionals.includes(name)))
  .map(([name, { program }]) => ({ name, program, serverUrl: database === 'postgresql' ? server?.url : undefined })))

await Promise.all(Array.from({ length: LANES }, async () => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const since = Date.now()
    const report = await runScenario(next.name, next.program, { serverUrl: next.serverUrl, quick })
    print(report, (Date.now() - since) / 1000)
    violations += report.violations.length
  }
}))
await server?.stop()
console.log(`\n${violations} violations in ${((Date.now() - began) / 1000).toFixed(0)} s`)
process.exitCode = violations > 0 ? 1 : 0
