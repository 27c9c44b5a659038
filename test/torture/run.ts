// `npm run torture`: attacks the running service, on both databases, and checks what is left of it.
//
//   npm run torture                             everything; allow it an hour
//   npm run torture -- --quick                  the same, two minutes for each database; `npm test` does this
//   npm run torture -- crash connections        some programs
//   DATABASE=sqlite npm run torture             on one database (sqlite, postgresql)
//
// It exits with 1 when anything was violated.

import { parseArgs } from 'node:util'
import { startPostgres } from '../support/postgres.ts'
import { programs } from './programs.ts'
import { print } from './report.ts'
import { perform } from './stage.ts'

const { values: { quick }, positionals } = parseArgs({ options: { quick: { type: 'boolean', default: false } }, allowPositionals: true })
const choice = process.env['DATABASE'] ?? ''
const databases = (['sqlite', 'postgresql'] as const).filter((name) => choice === '' || choice === name)
const unknown = positionals.filter((name) => !(name in programs))
if (databases.length === 0 || unknown.length > 0) {
  console.error(`Programs are ${Object.keys(programs).join(', ')}; DATABASE is sqlite or postgresql.`)
  process.exit(2)
}

let violations = 0
const began = Date.now()
for (const database of databases) {
  const server = database === 'postgresql' ? await startPostgres() : undefined
  for (const [name, { program, databases, wholeOnly = false }] of Object.entries(programs)) {
    if (!databases.includes(database) || (quick && wholeOnly) || (positionals.length > 0 && !positionals.includes(name))) continue
    const since = Date.now()
    const report = await perform(name, program, { serverUrl: server?.url, quick })
    print(report, (Date.now() - since) / 1000)
    violations += report.violations.length
  }
  await server?.stop()
}
console.log(`\n${violations} violations in ${((Date.now() - began) / 1000).toFixed(0)} s`)
process.exitCode = violations > 0 ? 1 : 0
