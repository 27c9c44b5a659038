import type { Command } from 'commander'
import { readConfig } from '../config.ts'

export function addMigrate (program: Command): void {
  program.command('migrate')
    .description('apply pending migrations to the database')
    .option('--status', 'list applied and pending migrations, without changes; exits with 1 if one is pending')
    .action(async ({ status = false }: { status?: boolean }) => {
      const { DATABASE_URL } = readConfig(process.env)
      await (status ? showStatus(DATABASE_URL) : applyMigrations(DATABASE_URL))
    })
}

async function applyMigrations (url: string): Promise<void> {
  const { migrate } = await import('../database/migrations/migrate.ts')
  const applied = await migrate(url)
  const lines = applied.map((name) => `Applied ${name}`)
  console.log(lines.length === 0 ? 'The database is up to date.' : lines.join('\n'))
}

async function showStatus (url: string): Promise<void> {
  const { databaseOf } = await import('../database/dialect.ts')
  const { migrationNames } = await import('../database/migrations/history.ts')
  const { pendingWithoutCreating } = await import('../database/migrations/startup-check.ts')
  const pending = new Set(await pendingWithoutCreating(url))
  for (const name of await migrationNames(databaseOf(url))) {
    console.log(`${pending.has(name) ? 'pending' : 'applied'}  ${name}`)
  }
  if (pending.size > 0) process.exitCode = 1
}
