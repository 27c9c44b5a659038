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

/** A program and its first arguments. */
interface Program { file: string, args: string[], shell?: boolean }

export function addStudio (program: Command): void {
  program.command('studio')
    .description('open the database in Prisma Studio; edits there create no events and do not change ETags')
    .option('--port <number>', 'local port of Prisma Studio', parseInteger(1, 65535), 5555)
    .option('--no-browser', 'do not open a browser')
    .action(async ({ port, browser }: StudioOptions) => {
      const { DATABASE_URL } = readConfig(process.env)
      await verifyMigrations(DATABASE_URL)
      const config = fileURLToPath(new URL('../../prisma/studio.mjs', import.meta.url))
      const options = ['studio', '--config', config, '--port', String(port), ...browser ? [] : ['--browser', 'none']]
      await run(installedPrisma() ?? fetchedPrisma(databaseOf(DATABASE_URL)), options, {
        // Not an argument: every user of the machine can read the arguments of a process.
        STUDIO_URL: databaseOf(DATABASE_URL) === 'sqlite' ? `file://${resolve(fileOf(DATABASE_URL))}` : DATABASE_URL,
        PRISMA_HIDE_UPDATE_MESSAGE: '1',
        CHECKPOINT_DISABLE: '1'
      })
    })
}

/** Returns Prisma's command line if it is installed beside this package or in the current folder. */
function installedPrisma (): Program | undefined {
  for (const place of [import.meta.url, join(process.cwd(), 'package.json')]) {
    try {
      const folder = dirname(createRequire(place).resolve('prisma/package.json'))
      return { file: process.execPath, args: [join(folder, 'build/index.js')] }
    } catch {
      // Not installed here.
    }
  }
  return undefined
}

/**
 * Returns the command that lets npm fetch Prisma's command line into its cache and run it. The service itself does not
 * need it, and it brings 127 packages.
 */
function fetchedPrisma (database: 'sqlite' | 'postgresql'): Program {
  const { devDependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  const shell = process.platform === 'win32'
  if (spawnSync('npm', ['--version'], { shell }).status !== 0) {
    throw new OperationalError(
      'Prisma Studio is part of the package prisma, which is not installed, and there is no npm to fetch it with.'
    )
  }
  // Studio reads SQLite with Node's own module, which Node 20 does not have.
  const packages = [
    `prisma@${devDependencies['@prisma/client']}`,
    ...database === 'sqlite' && Number(process.versions.node.split('.')[0]) < 22
      ? [`better-sqlite3@${devDependencies['better-sqlite3']}`]
      : []
  ]
  process.stderr.write(`Fetching Prisma Studio: ${packages.join(' and ')}. This takes a minute the first time …\n`)
  return { file: 'npm', args: ['exec', '--yes', ...packages.map((name) => `--package=${name}`), '--', 'prisma'], shell }
}

/** Runs a program until it exits. Forwards signals to it, and takes over its exit code. */
async function run (
  { file, args, shell }: Program, options: string[], settings: Record<string, string>
): Promise<void> {
  const child = spawn(file, [...args, ...options], {
    stdio: 'inherit', env: { ...process.env, ...settings }, shell: shell ?? false
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => { child.kill(signal) })
  }
  const [code] = await new Promise<[number | null]>((resolve, reject) => {
    child.once('error', reject).once('close', (code) => { resolve([code]) })
  })
  process.exitCode = code ?? 0
}
