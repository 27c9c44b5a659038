import type { Command } from 'commander'
import { readConfig } from '../config.ts'

export function addWorker (program: Command): void {
  program.command('worker')
    .description('deliver messages and webhooks for services that run with DELIVERY=false')
    .action(async () => {
      const { deliver } = await import('../start/worker.ts')
      await deliver(readConfig(process.env))
    })
}
