#!/usr/bin/env -S node --max-semi-space-size=64

// Node's default, 16 MB, holds the requests of 25 ms at full load. With a journal, which holds a thousand for 40 ms,
// garbage collection moved each of them to the old space: a read of one pet took 46 us in place of 38. V8 reads this
// option only at the start of a process.

import { setFlagsFromString } from 'node:v8'
import { CommanderError } from 'commander'
import { createProgram } from './cli/program.ts'
import { ValidationFailed } from './errors.ts'
import { packageInfo } from './folders.ts'
import { printable } from './monitoring/printable.ts'
import { explainFailure } from './start/explain-failure.ts'

const program = createProgram().version(packageInfo.version)

// The database and its copies hold secrets of webhooks: no other user of the machine may read them.
process.umask(0o077)

// What code allocates at the start lives long. From that, V8 learns to put what the same code allocates for each
// request into the old space, where it keeps whole requests until a major collection. In half of all starts, garbage
// collection took 30 microseconds of each request of a mixture in place of 3.
setFlagsFromString('--no-allocation-site-pretenuring')

// A reader that closes the pipe early, such as `head`, is not an error.
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') process.exit(0)
  process.stderr.write(`The output cannot be written: ${message}\n`)
  process.exit(1)
})

try {
  await program.parseAsync()
} catch (error) {
  process.exit(reportError(error))
}

/**
 * Prints an error.
 *
 * @returns the exit code: 2 for wrong arguments, 1 for a command that failed
 */
function reportError (error: unknown): number {
  // Commander has printed its error already. Its exit code 0 belongs to --help and --version.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  process.stderr.write(`${explainFailure(error).split('\n').map(printable).join('\n')}\n`)
  return error instanceof ValidationFailed ? 2 : 1
}
