import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { databaseOf } from '../database/dialect.ts'
import { verifyMigrations } from '../database/migrations/startup-check.ts'
import { fileOf } from '../database/sqlite/database-file.ts'
import { OperationalError } from '../operational-error.ts'
import { parseInteger } from './parse-arguments.ts'

interface StudioOptions { port: number, browser: boolean }

export function addStudio (program: Command): void {
  program.command('studio')
    .description('open the database in Prisma Studio; edits there create no events and do not change ETags')
    .option('--port <number>', 'local port of Prisma Studio', parseInteger(1, 65535), 5555)
    .option('--no-browser', 'do not open a browser')
    .action(async ({ port, browser }: StudioOptions) => {
      const { DATABASE_URL } = readConfig(process.env)
      await verifyMigrations(DATABASE_URL)
      const config = fileURLToPath(new URL('../../prisma/studio.mjs', import.meta.url))
      const options = ['--config', config, '--port', String(port), ...browser ? [] : ['--browser', 'none']]
      await runNode([prismaPath(), 'studio', ...options], {
        // Not an argument: every user of the machine can read the arguments of a process.
        STUDIO_URL: databaseOf(DATABASE_URL) === 'sqlite' ? `file://${resolve(fileOf(DATABASE_URL))}` : DATABASE_URL,
        PRISMA_HIDE_UPDATE_MESSAGE: '1',
        CHECKPOINT_DISABLE: '1'
      })
    })
}

/** Returns the path of Prisma's command line, a separate package that the service itself does not need. */
function prismaPath (): string {
  const { resolve } = createRequire(import.meta.url)
  try {
    return join(dirname(resolve('prisma/package.json')), 'build/index.js')
  } catch {
    throw new OperationalError(
      'Prisma Studio is part of the package prisma, which is not installed. ' +
      'Install it with: npm install --save-dev prisma@7.10.0'
    )
  }
}

/** Runs Node until it exits. Forwards signals to it, and takes over its exit code. */
async function runNode (args: string[], settings: Record<string, string>): Promise<void> {
  const child = spawn(process.execPath, args, { stdio: 'inherit', env: { ...process.env, ...settings } })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => { child.kill(signal) })
  }
  const [code] = await new Promise<[number | null]>((resolve, reject) => {
    child.once('error', reject).once('close', (code) => { resolve([code]) })
  })
  process.exitCode = code ?? 0
}
