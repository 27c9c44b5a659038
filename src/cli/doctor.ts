import type { Command } from 'commander'

/** Columns before the text of a check. */
const INDENT = 20

export function addDoctor (program: Command): void {
  program.command('doctor')
    .description('check the settings, the database, its migrations and its disk; exits with 1 if a check fails')
    .action(async () => {
      const { runChecks } = await import('./doctor-checks.ts')
      for await (const { subject, failed = false, text } of runChecks(process.env)) {
        const indented = text.replaceAll('\n', '\n' + ' '.repeat(INDENT))
        console.log(`${failed ? 'failed' : 'ok    '}  ${subject.padEnd(10)}  ${indented}`)
        if (failed) process.exitCode = 1
      }
    })
}
