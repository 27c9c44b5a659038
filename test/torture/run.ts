// `npm run torture`: injects faults into the running service, on both databases, and checks its answers and its data.

import { parseArgs } from 'node:util'
import { startPostgres } from '../support/postgres.ts'
import { scenarios } from './scenarios.ts'
import { printReport } from './report.ts'
import { runScenario } from './harness.ts'

const HELP = `
npm run torture -- [--quick] [scenario...]

Injects faults into the running service, on both databases, and checks its answers and its data. All scenarios take
about an hour on an idle machine. The command exits with 1 after a violation.

  --quick               short forms in parallel, in about a minute
  --help

Scenarios:

${Object.entries(scenarios).map(([name, { promise }]) => `  ${name.padEnd(22)}${promise}`).join('\n')}

Environment:

  DATABASE=NAME         one database: sqlite or postgresql
  PROCESSES=2           histories and neighbours with two workers of one service
  NEIGHBOURS='N6.*2'    an attack of neighbours, by a regular expression (neighbours.ts)
  TORTURE_ROOT=FOLDER   the built service of another folder, such as one in which scenarios should fail
`

const { values: options, positionals } = parsed()
const { quick } = options
if (options.help) {
  console.log(HELP)
  process.exit()
}
const choice = process.env['DATABASE'] ?? ''
const databases = (['sqlite', 'postgresql'] as const).filter((name) => choice === '' || choice === name)
const unknown = positionals.filter((name) => !(name in scenarios))
if (databases.length === 0 || unknown.length > 0) {
  refuse(`Scenarios are ${Object.keys(scenarios).join(', ')}; DATABASE is sqlite or postgresql.`)
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

function parsed () {
  try {
    const options = { quick: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } } as const
    return parseArgs({ options, allowPositionals: true })
  } catch (error) {
    return refuse((error as Error).message)
  }
}

function refuse (reason: string): never {
  console.error(reason)
  process.exit(2)
}
