import type { Command } from 'commander'
import type { AccountWithKey, NewAccount } from '../accounts/schemas.ts'
import { readConfig } from '../config.ts'
import { id } from './parse-arguments.ts'
import { JSON_OPTION, printRecords, type JsonOption } from './records.ts'
import type { OpenDatabase } from './with-database.ts'

interface CreateOptions extends JsonOption { email?: string }

type Account = Omit<AccountWithKey, 'apiKey'>

/** Number of accounts that one query reads. */
const PAGE = 1_000

export function addAccount (program: Command): void {
  const account = program.command('account')
    .description('create, list and delete accounts, also with SIGNUP=closed')
    .helpCommand(false)
  addCreate(account)
  addList(account)
  addDelete(account)
}

function addCreate (account: Command): void {
  account.command('create')
    .description('create an account and print its API key to standard output')
    .argument('<name>', 'name of the store')
    .option('--email <address>', 'contact address; it is neither verified nor unique')
    .option(...JSON_OPTION)
    .action(async (name: string, { email, json = false }: CreateOptions) => {
      const config = readConfig(process.env)
      const { NewAccountSchema } = await import('../accounts/schemas.ts')
      const { createCredential } = await import('../accounts/api-key.ts')
      const { createAccount } = await import('../accounts/commands.ts')
      const { migrateOrVerify } = await import('../database/migrations/startup-check.ts')
      const { valid } = await import('../http/valid-fields.ts')
      const { showKey, withDatabase } = await import('./with-database.ts')
      const input = { account: valid<NewAccount>(NewAccountSchema, { name, email }), credential: createCredential() }
      await migrateOrVerify(config)
      await withDatabase(config, async ({ commit }) => {
        const { record } = await commit(createAccount, input, { account: null })
        showKey(`Account ${record.id} was created.`, record, json)
      })
    })
}

function addList (account: Command): void {
  account.command('list')
    .description('list the accounts')
    .option(...JSON_OPTION)
    .action(async ({ json = false }: JsonOption) => {
      await withAccounts(async (database) => { await printRecords(accountsOf(database), json, formatAccount) })
    })
}

function addDelete (account: Command): void {
  account.command('delete')
    .description('delete an account with all its records; running services reject its keys within 5 seconds')
    .argument('<account>', 'id of the account, as shown by account list', id)
    .option(...JSON_OPTION)
    .action(async (account: number, { json = false }: JsonOption) => {
      const { deleteAccount } = await import('../accounts/commands.ts')
      const { requireAccount } = await import('./with-database.ts')
      await withAccounts(async (database) => {
        await requireAccount(database, account)
        await database.commit(deleteAccount, { account, conditions: {} }, { account })
        console.log(json ? JSON.stringify({ id: account, deleted: true }, null, 2) : `Account ${account} was deleted.`)
      })
    })
}

async function withAccounts (use: (database: OpenDatabase) => Promise<void>): Promise<void> {
  const config = readConfig(process.env)
  const { verifyMigrations } = await import('../database/migrations/startup-check.ts')
  const { withDatabase } = await import('./with-database.ts')
  await verifyMigrations(config.DATABASE_URL)
  await withDatabase(config, use)
}

async function * accountsOf ({ database }: OpenDatabase): AsyncGenerator<Account> {
  let after = 0n
  for (;;) {
    const rows = await database.prisma.account.findMany({
      where: { deletedAt: null, id: { gt: after } }, orderBy: { id: 'asc' }, take: PAGE
    })
    for (const { id, name, email, createdAt, expiresAt } of rows) {
      yield {
        id: Number(id),
        name,
        ...email === null ? {} : { email },
        createdAt: createdAt.toISOString(),
        ...expiresAt === null ? {} : { expiresAt: expiresAt.toISOString() }
      }
    }
    if (rows.length < PAGE) return
    after = rows.at(-1)!.id
  }
}

function formatAccount ({ id, name, email, createdAt, expiresAt }: Account): string {
  return [
    String(id).padEnd(6),
    `created ${createdAt}`,
    ...expiresAt === undefined ? [] : [`expires ${expiresAt}`],
    name,
    ...email === undefined ? [] : [`<${email}>`]
  ].join('  ')
}
