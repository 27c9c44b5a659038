import type { Command } from 'commander'
import { readConfig } from '../config.ts'

export function addWorker (program: Command): void {
  program.command('worker')
    .description('only deliver messages and webhooks, beside services with DELIVERY=false')
    .action(async () => {
      const { deliver } = await import('../start/worker.ts')
      await deliver(readConfig(process.env))
    })
}
