import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { id, parseInteger } from './parse-arguments.ts'
import { JSON_OPTION, type JsonOption } from './records.ts'

/** Pets in a transaction: enough to amortize its fsync, few enough to delay a service's writes only briefly. */
const BATCH_SIZE = 20_000

interface SeedOptions extends JsonOption { pets: number, account?: number }

export function addSeed (program: Command): void {
  program.command('seed')
    .description('add pets and their stock to a store, without events')
    .option('--pets <number>', 'number of pets', parseInteger(1, 1_000_000_000), 1_000)
    .option('--account <id>', 'id of the account; default: a new one, whose API key goes to standard output', id)
    .option(...JSON_OPTION)
    .action(async ({ pets, account, json = false }: SeedOptions) => {
      const config = readConfig(process.env)
      const { createCredential } = await import('../accounts/api-key.ts')
      const { createAccount } = await import('../accounts/commands.ts')
      const { migrateOrVerify } = await import('../database/migrations/startup-check.ts')
      const { seedCategories, seedPets } = await import('../seed/bulk-seed.ts')
      const { startProgress } = await import('./progress-bar.ts')
      const { requireAccount, showKey, withDatabase } = await import('./with-database.ts')
      await migrateOrVerify(config)
      await withDatabase(config, async (database) => {
        const { commit } = database
        const isNew = account === undefined
        if (account === undefined) {
          const fields = { account: { name: 'Seeded store' }, credential: createCredential() }
          const { record: created } = await commit(createAccount, fields, { account: null })
          account = created.id
          showKey(`Account ${account} was created.`, created, json)
        } else {
          await requireAccount(database, account)
        }
        const { record: categories } = await commit(seedCategories, { account }, { account })
        const progress = startProgress('pets', pets)
        try {
          for (let done = 0; done < pets;) {
            const batch = Math.min(BATCH_SIZE, pets - done)
            await commit(seedPets, { account, categories, pets: batch }, { account })
            progress.update(done += batch)
          }
        } finally {
          progress.stop()
        }
        process.stderr.write(`Added ${pets} pets to account ${account}.\n`)
        if (json && !isNew) console.log(JSON.stringify({ account, pets }, null, 2))
      })
    })
}
