// `npm run torture`: injects faults into the running service, on both databases, and checks its answers and its data.
//
//   npm run torture                             all scenarios, in about an hour
//   npm run torture -- --quick                  short forms in parallel, in about a minute
//   npm run torture -- crash connections        some scenarios
//   NEIGHBOURS='N6.*2' npm run torture -- neighbours  an attack on two processes (see neighbours.ts)
//   PROCESSES=2 npm run torture -- histories neighbours  the same with two workers of one service, which are killed
//   DATABASE=sqlite npm run torture             on one database (sqlite, postgresql)
//
// TORTURE_ROOT=<folder> attacks the built service of another checkout, such as one in which scenarios should fail.
// The command exits with 1 after a violation.

import { parseArgs } from 'node:util'
import { startPostgres } from '../support/postgres.ts'
import { scenarios } from './scenarios.ts'
import { printReport } from './report.ts'
import { runScenario } from './harness.ts'

const { values: { quick }, positionals } = parseArgs({
  options: { quick: { type: 'boolean', default: false } },
  allowPositionals: true
})
const choice = process.env['DATABASE'] ?? ''
const databases = (['sqlite', 'postgresql'] as const).filter((name) => choice === '' || choice === name)
const unknown = positionals.filter((name) => !(name in scenarios))
if (databases.length === 0 || unknown.length > 0) {
  console.error(`Scenarios are ${Object.keys(scenarios).join(', ')}; DATABASE is sqlite or postgresql.`)
  process.exit(2)
}

/** Short forms mostly wait and tolerate a busy machine, so that they run in parallel. */
const PARALLEL_SCENARIOS = quick ? 3 : 1

let violations = 0
const began = Date.now()
const server = databases.includes('postgresql') ? await startPostgres() : undefined
const waiting = databases.flatMap((database) => Object.entries(scenarios)
  .filter(([name, { databases, fullFormOnly = false }]) =>
    databases.includes(database) && !(quick && fullFormOnly) &&
    (positionals.length === 0 || positionals.includes(name)))
  .map(([name, { scenario }]) => ({ name, scenario, serverUrl: database === 'postgresql' ? server?.url : undefined })))

await Promise.all(Array.from({ length: PARALLEL_SCENARIOS }, async () => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const since = Date.now()
    const report = await runScenario(next.name, next.scenario, { serverUrl: next.serverUrl, quick })
    printReport(report, (Date.now() - since) / 1000)
    violations += report.violations.length
  }
}))
await server?.stop()
console.log(`\n${violations} violations in ${((Date.now() - began) / 1000).toFixed(0)} s`)
process.exitCode = violations > 0 ? 1 : 0
