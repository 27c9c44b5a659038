import type { Command } from 'commander'
import type { NewAccount } from '../accounts/schemas.ts'
import { readConfig } from '../config.ts'

export function addAccount (program: Command): void {
  const account = program.command('account')
    .description('create accounts, even with SIGNUP=closed')
    .helpCommand(false)

  account.command('create')
    .description('create an account and print its API key to standard output')
    .argument('<name>', 'name of the store')
    .option('--email <address>', 'contact address; it is neither verified nor unique')
    .action(async (name: string, { email }: { email?: string }) => {
      const config = readConfig(process.env)
      const { NewAccountSchema } = await import('../accounts/schemas.ts')
      const { createAccount } = await import('../accounts/commands.ts')
      const { migrateOrVerify } = await import('../database/migrations/startup-check.ts')
      const { showKey, valid, withDatabase } = await import('./with-database.ts')
      const fields = valid<NewAccount>(NewAccountSchema, { name, email })
      await migrateOrVerify(config)
      await withDatabase(config, async ({ commit }) => {
        const { record: { id, apiKey } } = await commit(createAccount, { account: fields }, { account: null })
        showKey(`Account ${id} was created.`, apiKey)
      })
    })
}
