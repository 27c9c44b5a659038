import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
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

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The folder for packages that only this command needs. */
const FETCHED = join(ROOT, '.studio')

export function addStudio (program: Command): void {
  program.command('studio')
    .description('open the database in Prisma Studio; edits there create no events and do not change ETags')
    .option('--port <number>', 'local port of Prisma Studio', parseInteger(1, 65535), 5555)
    .option('--no-browser', 'do not open a browser')
    .action(async ({ port, browser }: StudioOptions) => {
      const { DATABASE_URL } = readConfig(process.env)
      await verifyMigrations(DATABASE_URL)
      const config = join(ROOT, 'prisma/studio.mjs')
      const options = ['--config', config, '--port', String(port), ...browser ? [] : ['--browser', 'none']]
      await runNode([prismaPath(), 'studio', ...options], {
        // Not an argument: every user of the machine can read the arguments of a process.
        STUDIO_URL: databaseOf(DATABASE_URL) === 'sqlite' ? `file://${resolve(fileOf(DATABASE_URL))}` : DATABASE_URL,
        PRISMA_HIDE_UPDATE_MESSAGE: '1',
        CHECKPOINT_DISABLE: '1'
      })
    })
}

/**
 * Returns the path of Prisma's command line. The service itself does not need it and it brings 127 packages, so npm
 * fetches it into a folder of this package on the first call.
 */
function prismaPath (): string {
  const path = findPrisma()
  if (path !== undefined) return path
  const name = `prisma@${prismaVersion()}`
  process.stderr.write(`Fetching Prisma Studio with npm (${name}). This takes a minute the first time …\n`)
  // SQLite's driver is found from there, in the folders above. Studio needs no engine, so no install script runs.
  const options = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync('npm', ['install', '--prefix', FETCHED, ...options, name], {
    stdio: ['ignore', 'ignore', 'inherit'], shell: process.platform === 'win32'
  })
  const fetched = findPrisma()
  if (status === 0 && fetched !== undefined) return fetched
  throw new OperationalError(
    'Prisma Studio is part of the package prisma, which npm could not fetch. ' +
    `To install it in this folder, run: npm install --save-dev ${name}`
  )
}

/** Finds Prisma's command line beside this package, in the current folder, or where an earlier call put it. */
function findPrisma (): string | undefined {
  for (const place of [import.meta.url, join(process.cwd(), 'package.json'), join(FETCHED, 'package.json')]) {
    try {
      return join(dirname(createRequire(place).resolve('prisma/package.json')), 'build/index.js')
    } catch {
      // It is not installed there.
    }
  }
  return undefined
}

/** Returns the version of Prisma that made the client. */
function prismaVersion (): string {
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  return devDependencies['@prisma/client']!
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
