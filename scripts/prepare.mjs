// Prepares a clone, so that each npm script works as the first command. A step whose output is new enough is skipped.
//
//   node scripts/prepare.mjs            installs what builds and runs the service, and compiles src to dist
//   node scripts/prepare.mjs dev        also installs what tests and checks the service
//   node scripts/prepare.mjs models     the same, but compiles nothing: src may lag behind the models
//   node scripts/prepare.mjs dev tools  also installs programs of others: what test/tools needs

import { spawn } from 'node:child_process'
import { existsSync, readdirSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'

process.chdir(join(import.meta.dirname, '..'))
const steps = process.argv.slice(2)
const CLIENT = 'src/generated/client'
const PLUGINS = '.tap/plugins/package.json'

// An installation without the tools would delete those that are there.
const isDev = steps.includes('dev') || steps.includes('models') || existsSync('node_modules/tap')
if (isStale('node_modules/.package-lock.json', 'package-lock.json') || (isDev && !existsSync('node_modules/tap'))) {
  // Without the tools, no package needs its install script.
  await npm('Installing packages', ...isDev ? ['--include=dev'] : ['--omit=dev', '--ignore-scripts'])
}
await Promise.all(['sqlite', 'postgresql'].map(async (database) => {
  if (!isStale(`src/generated/${database}/client.ts`, 'prisma', 'scripts/tables-generator.mjs', 'package-lock.json')) return
  const env = { ...process.env, DATABASE_URL: database === 'sqlite' ? 'file:none' : 'postgresql://none/none' }
  await node(`Generating the Prisma client for ${database}`, ['prisma/build/index.js', 'generate'], { env })
}))
if (!steps.includes('models') && isStale('dist/LICENSES.txt', 'src', 'scripts', 'package-lock.json')) {
  await node('Compiling src to dist', ['../scripts/build.mjs'])
}
if (steps.includes('dev') && isStale(PLUGINS, '.taprc', 'node_modules/.package-lock.json')) {
  await node('Setting up tap', ['tap/dist/esm/run.mjs', 'build'])
  // tap writes the file only once.
  utimesSync(PLUGINS, new Date(), new Date())
}
if (steps.includes('dev') && isStale(`${CLIENT}/openapi.ts`, `${CLIENT}/openapi.json`)) {
  await node('Writing the types of the client', [
    'openapi-typescript/bin/cli.js', `${CLIENT}/openapi.json`, '--root-types', '--root-types-no-schema-prefix',
    '--default-non-nullable=false', `--output=${CLIENT}/openapi.ts`
  ])
}
if (steps.includes('tools') && isStale('test/tools/node_modules/.package-lock.json', 'test/tools/package-lock.json')) {
  await npm('Installing programs of others', '--prefix=test/tools', '--ignore-scripts')
}

/** Returns true if a file is missing, or older than a source: a file, or a folder with all that it contains. */
function isStale (file, ...sources) {
  return !existsSync(file) || sources.some((source) => changed(source) > statSync(file).mtimeMs)
}

/** Returns the time of the latest change of a path, or below it. Generated files and packages do not count. */
function changed (path) {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  const names = readdirSync(path).filter((name) => name !== 'generated' && name !== 'node_modules')
  // The generated folders change src itself.
  return Math.max(path === 'src' ? 0 : stat.mtimeMs, ...names.map((name) => changed(join(path, name))))
}

async function npm (title, ...args) {
  await run(title, 'npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error', ...args], { stdio: 'inherit' })
}

async function node (title, [program, ...args], options) {
  await run(title, process.execPath, [join('node_modules', program), ...args], options)
}

/** Runs a program. If it fails, prints its output and ends this process. */
async function run (title, program, args, options) {
  console.error(`${title} …`)
  const child = spawn(program, args, options)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => { output += data })
  const code = await new Promise((resolve) => { child.once('error', resolve).once('close', resolve) })
  if (code === 0) return
  console.error(`${output}\n${title} failed${code instanceof Error ? `: ${code.message}` : ''}.`)
  process.exit(1)
}
