#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { addAccount } from './cli/account.ts'
import { addBackup } from './cli/backup.ts'
import { addDoctor } from './cli/doctor.ts'
import { addKey } from './cli/key.ts'
import { addMigrate } from './cli/migrate.ts'
import { addOpenapi } from './cli/openapi.ts'
import { addSeed } from './cli/seed.ts'
import { addStart } from './cli/start.ts'
import { addStudio } from './cli/studio.ts'
import { addWorker } from './cli/worker.ts'
import { ValidationFailed } from './errors.ts'
import { explainFailure } from './start/explain-failure.ts'

/** The command line. Each command loads what it works with when it runs, so that help is there at once. */
const program = new Command('petstore')
  .description('The pet store HTTP service. Settings are environment variables; the README lists them.')
  .version((JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version)
  .helpCommand(false)
  .exitOverride()
  .configureOutput({ outputError: (text, write) => { write(`${text.replace(/^error: /, '').trim().replaceAll('\n', ' ')}\n`) } })

for (const add of [addStart, addWorker, addMigrate, addSeed, addAccount, addKey, addStudio, addOpenapi, addBackup, addDoctor]) add(program)

// A reader that has seen enough, such as `head`, is no failure.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => { process.exit(code === 'EPIPE' ? 0 : 1) })

try {
  await program.parseAsync()
} catch (error) {
  process.exit(failed(error))
}

/** @returns 2 for a call that makes no sense, 1 for one that could not be done */
function failed (error: unknown): number {
  // Commander has said it already; 0 is that of --help and --version.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  process.stderr.write(`${explainFailure(error)}\n`)
  return error instanceof ValidationFailed ? 2 : 1
}
