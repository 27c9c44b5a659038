import type { Command } from 'commander'
import { readConfig } from '../config.ts'

export function addStart (program: Command): void {
  program.command('start')
    .description('serve, until told to stop')
    .option('--demo', 'open a demo store in the database, when neither DATABASE_URL nor DEMO is set')
    .action(async ({ demo = false }: { demo?: boolean }) => {
      const { serve } = await import('../start/server.ts')
      await serve(readConfig(environment(demo)))
    })
}

/** A demo store belongs into the database that nobody named. */
function environment (demo: boolean): NodeJS.ProcessEnv {
  const { DATABASE_URL = '', DEMO = '' } = process.env
  return demo && DATABASE_URL === '' && DEMO === '' ? { ...process.env, DEMO: 'true' } : process.env
}
