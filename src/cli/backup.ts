import type { Command } from 'commander'
import { readConfig } from '../config.ts'

export function addBackup (program: Command): void {
  program.command('backup')
    .description('save a consistent copy of the SQLite database, also while a service uses it')
    .argument('<file>', 'where to; it must not be there yet')
    .action(async (file: string) => {
      const { saveCopy } = await import('../database/sqlite/backup.ts')
      const bytes = await saveCopy(readConfig(process.env).DATABASE_URL, file)
      console.log(`Saved ${(bytes / 2 ** 20).toFixed(1)} MB to ${file}`)
    })
}
