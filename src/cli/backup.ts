import type { Command } from 'commander'
import { readConfig } from '../config.ts'

export function addBackup (program: Command): void {
  program.command('backup')
    .description('save a consistent copy of the SQLite database, even while a service uses it')
    .argument('<file>', 'path of the copy; the file must not exist yet')
    .action(async (file: string) => {
      const { saveCopy } = await import('../database/sqlite/backup.ts')
      const bytes = await saveCopy(readConfig(process.env).DATABASE_URL, file)
      console.log(`Saved ${(bytes / 2 ** 20).toFixed(1)} MB to ${file}`)
    })
}
