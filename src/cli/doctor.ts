import type { Command } from 'commander'
import type { CheckResult } from './doctor-checks.ts'
import { JSON_OPTION, printRecords, type JsonOption } from './records.ts'

/** Columns before the text of a check. */
const INDENT = 20

export function addDoctor (program: Command): void {
  program.command('doctor')
    .description('check the settings, the database, its migrations and its disk; exits with 1 if a check fails')
    .option(...JSON_OPTION)
    .action(async ({ json = false }: JsonOption) => {
      const { runChecks } = await import('./doctor-checks.ts')
      await printRecords(noted(runChecks(process.env)), json, ({ subject, failed, text }) => {
        const [first, ...others] = text.split('\n')
        const heading = `${failed ? 'failed' : 'ok    '}  ${subject.padEnd(10)}  ${first}`
        return [heading, ...others.map((line) => ' '.repeat(INDENT) + line)]
      })
    })
}

/** Sets the exit code when a check fails. */
async function * noted (results: AsyncIterable<CheckResult>): AsyncGenerator<Required<CheckResult>> {
  for await (const { subject, failed = false, text } of results) {
    if (failed) process.exitCode = 1
    yield { subject, failed, text }
  }
}
