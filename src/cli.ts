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

/** The command line. Each command loads its modules when it runs, so that `--help` is fast. */
const program = new Command('petstore')
  .description('The pet store HTTP service. Its settings are environment variables; see docs/reference/settings.md.')
  .version(packageVersion())
  .helpCommand(false)
  .exitOverride()
  .configureOutput({
    outputError (text, write) { write(`${text.replace(/^error: /, '').trim().replaceAll('\n', ' ')}\n`) }
  })

const commands = [
  addStart, addWorker, addMigrate, addSeed, addAccount, addKey, addStudio, addOpenapi, addBackup, addDoctor
]
for (const addCommand of commands) addCommand(program)

// A reader that closes the pipe early, such as `head`, is not an error.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => { process.exit(code === 'EPIPE' ? 0 : 1) })

try {
  await program.parseAsync()
} catch (error) {
  process.exit(reportError(error))
}

function packageVersion (): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/**
 * Prints an error.
 *
 * @returns the exit code: 2 for wrong arguments, 1 for a command that failed
 */
function reportError (error: unknown): number {
  // Commander has printed its error already. Its exit code 0 belongs to --help and --version.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  process.stderr.write(`${explainFailure(error)}\n`)
  return error instanceof ValidationFailed ? 2 : 1
}
