import type { Command } from 'commander'
import type { ApiKey, NewApiKey } from '../accounts/schemas.ts'
import { readConfig } from '../config.ts'
import type { OpenDatabase } from './with-database.ts'
import { id } from './parse-arguments.ts'

interface OfAccount { account: number }
interface KeyOptions extends OfAccount { label?: string, readOnly?: boolean, expiresAt?: string }

export function addKey (program: Command): void {
  const key = program.command('key').description('make, list and revoke API keys').helpCommand(false)

  key.command('create')
    .description('make another key; it goes to standard output')
    .requiredOption('--account <id>', 'whose key', id)
    .option('--label <text>', 'what the key is for')
    .option('--read-only', 'a key that may only read')
    .option('--expires-at <time>', 'when it stops working, such as 2027-11-21T10:00:00Z')
    .action(async ({ account, ...fields }: KeyOptions) => {
      const { NewApiKeySchema } = await import('../accounts/schemas.ts')
      const { createApiKey } = await import('../accounts/commands.ts')
      const { showKey, valid } = await import('./with-database.ts')
      const wanted = valid<NewApiKey>(NewApiKeySchema, fields)
      await withAccount(account, async ({ commit }) => {
        const { record: { id, apiKey } } = await commit(createApiKey, { account, key: wanted }, { account })
        showKey(`Key ${id} of account ${account} was made.`, apiKey)
      })
    })

  key.command('list')
    .description('list the keys of an account, without their secrets')
    .requiredOption('--account <id>', 'whose keys', id)
    .action(async ({ account }: OfAccount) => {
      await withAccount(account, async (store) => {
        for await (const key of keysOf(store, account)) console.log(lineOf(key))
      })
    })

  key.command('revoke')
    .description('end a key; running services refuse it within 5 seconds')
    .argument('<key>', 'the id of the key, as key list shows it', id)
    .requiredOption('--account <id>', 'whose key', id)
    .action(async (keyId: number, { account }: OfAccount) => {
      const { revokeApiKey } = await import('../accounts/commands.ts')
      await withAccount(account, async ({ commit }) => {
        await commit(revokeApiKey, { account, keyId, conditions: {} }, { account })
        console.log(`Key ${keyId} was revoked.`)
      })
    })
}

async function withAccount (account: number, use: (store: OpenDatabase) => Promise<void>): Promise<void> {
  const config = readConfig(process.env)
  const { verifyMigrations } = await import('../database/migrations/startup-check.ts')
  const { requireAccount, withDatabase } = await import('./with-database.ts')
  await verifyMigrations(config.DATABASE_URL)
  await withDatabase(config, async (store) => {
    await requireAccount(store, account)
    await use(store)
  })
}

async function * keysOf ({ read }: OpenDatabase, account: number): AsyncGenerator<ApiKey> {
  const { listKeys } = await import('../accounts/commands.ts')
  let after: number | undefined
  do {
    const { records, next } = await listKeys(read, account, { limit: 100, descending: false, after, filters: {} })
    yield * JSON.parse(records) as ApiKey[]
    after = next === null ? undefined : Number(next)
  } while (after !== undefined)
}

function lineOf ({ id, prefix, label, readOnly, createdAt, lastUsedAt, expiresAt }: ApiKey): string {
  return [
    String(id).padEnd(6), `psk_${prefix}_…`, readOnly ? 'reads ' : 'writes', `made ${createdAt}`,
    lastUsedAt === undefined ? 'never used' : `used ${lastUsedAt}`,
    ...(expiresAt === undefined ? [] : [`expires ${expiresAt}`]),
    ...(label === undefined ? [] : [label])
  ].join('  ')
}
