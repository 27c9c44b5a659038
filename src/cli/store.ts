import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import type { StoreCounts } from '../lab/stored-tables.ts'
import { id } from './parse-arguments.ts'
import { JSON_OPTION, type JsonOption } from './records.ts'

interface ImportOptions extends JsonOption { account?: number }

export function addStore (program: Command): void {
  const store = program.command('store').description('export and import the records of a store').helpCommand(false)

  store.command('export')
    .description('print the records of a store as lines of JSON, for import')
    .requiredOption('--account <id>', 'id of the account', id)
    .action(async ({ account }: { account: number }) => {
      const config = readConfig(process.env)
      const { verifyMigrations } = await import('../database/migrations/startup-check.ts')
      const { linesOfStore } = await import('../lab/store-file.ts')
      const { requireAccount, withDatabase } = await import('./with-database.ts')
      await verifyMigrations(config.DATABASE_URL)
      await withDatabase(config, async (database) => {
        await requireAccount(database, account)
        process.stdout.write(await database.readView(account, async (read) => await linesOfStore(read, account)))
      })
    })

  store.command('import')
    .description('replace the records of a store by those of a file, under new ids')
    .argument('<file>', 'lines of JSON, as store export prints them')
    .option('--account <id>', 'id of the account; default: a new one, whose API key goes to standard output', id)
    .option(...JSON_OPTION)
    .action(async (file: string, { account, json = false }: ImportOptions) => {
      const config = readConfig(process.env)
      const { migrateOrVerify } = await import('../database/migrations/startup-check.ts')
      const { importStore, openImportedStore, readStoreFile } = await import('../lab/import-store.ts')
      const { requireAccount, showKey, withDatabase } = await import('./with-database.ts')
      const store = await readStoreFile(file)
      await migrateOrVerify(config)
      await withDatabase(config, async (database) => {
        const { commit } = database
        if (account !== undefined) {
          await requireAccount(database, account)
          const counts = await importStore(commit, account, store)
          report(account, counts)
          if (json) console.log(JSON.stringify({ account, counts }, null, 2))
          return
        }
        const { opened, counts } = await openImportedStore(commit, 'Imported store', store)
        report(opened.id, counts)
        showKey(`Account ${opened.id} was created.`, opened, json)
      })
    })
}

function report (account: number, counts: StoreCounts): void {
  const records = Object.values(counts).reduce((sum, count) => sum + count)
  process.stderr.write(`Imported ${records} records to account ${account}.\n`)
}
