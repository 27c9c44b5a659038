import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { id, parseInteger } from './parse-arguments.ts'

/** Pets in one transaction: enough to make its fsync cheap, few enough to keep a service's writes waiting for no more than a moment. */
const BATCH = 20_000

interface SeedOptions { pets: number, account?: number }

export function addSeed (program: Command): void {
  program.command('seed')
    .description('fill a store with pets and their stock, without events')
    .option('--pets <number>', 'how many', parseInteger(1, 1_000_000_000), 1_000)
    .option('--account <id>', 'whose store; without it one is opened and its API key goes to standard output', id)
    .action(async ({ pets, account }: SeedOptions) => {
      const config = readConfig(process.env)
      const { createAccount } = await import('../accounts/commands.ts')
      const { migrateOrVerify } = await import('../database/migrations/startup-check.ts')
      const { seedCategories, seedPets } = await import('../seed/bulk-seed.ts')
      const { startProgress } = await import('./progress-bar.ts')
      const { requireAccount, showKey, withDatabase } = await import('./with-database.ts')
      await migrateOrVerify(config)
      await withDatabase(config, async (store) => {
        const { commit } = store
        if (account === undefined) {
          const { record: opened } = await commit(createAccount, { account: { name: 'Seeded store' } }, { account: null })
          account = opened.id
          showKey(`Account ${account} was opened.`, opened.apiKey)
        } else {
          await requireAccount(store, account)
        }
        const { record: categories } = await commit(seedCategories, { account }, { account })
        const progress = startProgress('pets', pets)
        try {
          for (let done = 0; done < pets;) {
            const batch = Math.min(BATCH, pets - done)
            await commit(seedPets, { account, categories, pets: batch }, { account })
            progress.update(done += batch)
          }
        } finally {
          progress.stop()
        }
        process.stderr.write(`Account ${account} has ${pets} more pets.\n`)
      })
    })
}
