import type { Command } from 'commander'
import type { ApiKey, NewApiKey } from '../accounts/schemas.ts'
import { readConfig } from '../config.ts'
import type { OpenDatabase, UseDatabase } from './with-database.ts'
import { id } from './parse-arguments.ts'
import { JSON_OPTION, printRecords, type JsonOption } from './records.ts'

interface AccountOption { account: number }
interface KeyOptions extends AccountOption, JsonOption { label?: string, readOnly?: boolean, expiresAt?: string }

export function addKey (program: Command): void {
  const key = program.command('key').description('create, list and revoke API keys').helpCommand(false)

  key.command('create')
    .description('create an API key and print it to standard output')
    .requiredOption('--account <id>', 'id of the account', id)
    .option('--label <text>', 'purpose of the key')
    .option('--read-only', 'allow the key to read, but not to write')
    .option('--expires-at <time>', 'time at which the key expires, such as 2027-11-21T10:00:00Z')
    .option(...JSON_OPTION)
    .action(async ({ account, json = false, ...fields }: KeyOptions) => {
      const { NewApiKeySchema } = await import('../accounts/schemas.ts')
      const { createCredential } = await import('../accounts/api-key.ts')
      const { createApiKey } = await import('../accounts/commands.ts')
      const { valid } = await import('../http/valid-fields.ts')
      const { showKey } = await import('./with-database.ts')
      const input = { key: valid<NewApiKey>(NewApiKeySchema, fields), credential: createCredential() }
      await withAccount(account, async ({ commit }) => {
        const { record } = await commit(createApiKey, input, { account })
        showKey(`Key ${record.id} of account ${account} was created.`, record, json)
      })
    })

  key.command('list')
    .description('list the API keys of an account, without their secrets')
    .requiredOption('--account <id>', 'id of the account', id)
    .option(...JSON_OPTION)
    .action(async ({ account, json = false }: AccountOption & JsonOption) => {
      await withAccount(account, async (database) => {
        await printRecords(keysOf(database, account), json, formatKey)
      })
    })

  key.command('revoke')
    .description('revoke an API key; running services reject it within 5 seconds')
    .argument('<key>', 'id of the key, as shown by key list', id)
    .requiredOption('--account <id>', 'id of the account', id)
    .option(...JSON_OPTION)
    .action(async (keyId: number, { account, json = false }: AccountOption & JsonOption) => {
      const { revokeApiKey } = await import('../accounts/commands.ts')
      await withAccount(account, async ({ commit }) => {
        await commit(revokeApiKey, { keyId, conditions: {} }, { account })
        console.log(json ? JSON.stringify({ id: keyId, revoked: true }, null, 2) : `Key ${keyId} was revoked.`)
      })
    })
}

async function withAccount (account: number, use: UseDatabase): Promise<void> {
  const config = readConfig(process.env)
  const { verifyMigrations } = await import('../database/migrations/startup-check.ts')
  const { requireAccount, withDatabase } = await import('./with-database.ts')
  await verifyMigrations(config.DATABASE_URL)
  await withDatabase(config, async (database) => {
    await requireAccount(database, account)
    await use(database)
  })
}

async function * keysOf ({ read }: OpenDatabase, account: number): AsyncGenerator<ApiKey> {
  const { listKeys } = await import('../accounts/queries.ts')
  let after: number | undefined
  do {
    const { records, next } = await listKeys(read, account, { limit: 50, descending: false, after, filters: {} })
    yield * JSON.parse(records) as ApiKey[]
    after = next === null ? undefined : Number(next)
  } while (after !== undefined)
}

function formatKey ({ id, prefix, label, readOnly, createdAt, lastUsedAt, expiresAt }: ApiKey): string {
  return [
    String(id).padEnd(6), `psk_${prefix}_…`, readOnly ? 'read-only ' : 'read-write', `created ${createdAt}`,
    lastUsedAt === undefined ? 'never used' : `last used ${lastUsedAt}`,
    ...(expiresAt === undefined ? [] : [`expires ${expiresAt}`]),
    ...(label === undefined ? [] : [label])
  ].join('  ')
}
