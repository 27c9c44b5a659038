import type { Command } from 'commander'

export function addDoctor (program: Command): void {
  program.command('doctor')
    .description('check the settings, the database, its migrations and its disk; exit code 1 when something is wrong')
    .action(async () => {
      const { runChecks } = await import('./doctor-checks.ts')
      let healthy = true
      for await (const { subject, wrong = false, says } of runChecks(process.env)) {
        console.log(`${wrong ? 'wrong' : 'ok   '}  ${subject.padEnd(10)}  ${says.replaceAll('\n', '\n' + ' '.repeat(19))}`)
        if (wrong) healthy = false
      }
      if (!healthy) process.exitCode = 1
    })
}
