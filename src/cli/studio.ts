import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { verifyMigrations } from '../database/migrations/startup-check.ts'
import { PACKAGE } from '../folders.ts'
import { OperationalError } from '../operational-error.ts'
import { parseInteger } from './parse-arguments.ts'

interface StudioOptions { port: number, browser: boolean }

export function addStudio (program: Command): void {
  program.command('studio')
    .description('open the database in Prisma Studio; edits there create no events and do not change ETags')
    .option('--port <number>', 'local port of Prisma Studio', parseInteger(1, 65535), 5555)
    .option('--no-browser', 'do not open a browser')
    .action(async ({ port, browser }: StudioOptions) => {
      await verifyMigrations(readConfig(process.env).DATABASE_URL)
      const config = join(PACKAGE, 'prisma.config.ts')
      const options = ['--config', config, '--port', String(port), ...browser ? [] : ['--browser', 'none']]
      const child = spawn(process.execPath, [prismaProgram(), 'studio', ...options], {
        stdio: 'inherit', env: { ...process.env, PRISMA_HIDE_UPDATE_MESSAGE: '1', CHECKPOINT_DISABLE: '1' }
      })
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => { child.kill(signal) })
      const [code] = await once(child, 'close') as [number | null]
      process.exitCode = code ?? 0
    })
}

/** Finds Prisma's command line beside this package or in the current folder. The service does not need it. */
function prismaProgram (): string {
  for (const place of [PACKAGE, process.cwd()]) {
    try {
      return join(dirname(createRequire(join(place, 'package.json')).resolve('prisma/package.json')), 'build/index.js')
    } catch {
      // It is not installed there.
    }
  }
  throw new OperationalError('Prisma Studio is part of the package prisma, which is not installed. ' +
    'Install it in this folder: npm install --save-dev prisma@7')
}
