import type { Command } from 'commander'
import { numberOfProcesses, readConfig } from '../config.ts'

export function addStart (program: Command): void {
  program.command('start')
    .description('start the service')
    .option('--demo', 'create a demo store, if neither DATABASE_URL nor DEMO is set')
    .action(async ({ demo = false }: { demo?: boolean }) => {
      const config = readConfig(environmentFor(demo))
      if (numberOfProcesses(config) > 1) {
        const { startProcesses } = await import('../start/processes.ts')
        return await startProcesses(config)
      }
      const { serve } = await import('../start/server.ts')
      await serve(config)
    })
}

/** Returns the environment. Sets DEMO only for the default database, so that a demo store never enters a chosen one. */
function environmentFor (demo: boolean): NodeJS.ProcessEnv {
  const { DATABASE_URL = '', DEMO = '' } = process.env
  return demo && DATABASE_URL === '' && DEMO === '' ? { ...process.env, DEMO: 'true' } : process.env
}
