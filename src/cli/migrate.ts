import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { JSON_OPTION, printRecords, type JsonOption } from './records.ts'

export function addMigrate (program: Command): void {
  program.command('migrate')
    .description('apply pending migrations to the database')
    .option('--status', 'list applied and pending migrations, without changes; exits with 1 if one is pending')
    .option(...JSON_OPTION)
    .action(async ({ status = false, json = false }: JsonOption & { status?: boolean }) => {
      const { DATABASE_URL } = readConfig(process.env)
      await (status ? showStatus(DATABASE_URL, json) : applyMigrations(DATABASE_URL, json))
    })
}

async function applyMigrations (url: string, json: boolean): Promise<void> {
  const { migrate } = await import('../database/migrations/migrate.ts')
  const applied = await migrate(url)
  const migrations = applied.map((name) => ({ name, state: 'applied' }))
  if (migrations.length === 0 && !json) console.log('The database is up to date.')
  await printRecords(migrations, json, ({ name }) => `Applied ${name}`)
}

async function showStatus (url: string, json: boolean): Promise<void> {
  const { databaseOf } = await import('../database/dialect.ts')
  const { migrationNames, pendingMigrations } = await import('../database/migrations/history.ts')
  const pending = new Set(await pendingMigrations(url))
  const names = await migrationNames(databaseOf(url))
  const migrations = names.map((name) => ({ name, state: pending.has(name) ? 'pending' : 'applied' }))
  await printRecords(migrations, json, ({ name, state }) => `${state}  ${name}`)
  if (pending.size > 0) process.exitCode = 1
}
