// Makes a fresh clone ready. `npm start` and `npm test` run it first, so that each of them works as
// the first command; it uses nothing but Node, because at that moment there is nothing else.
//
//   node scripts/prepare.mjs          installs the packages, generates the Prisma clients
//   node scripts/prepare.mjs build    … and compiles src to dist
//   node scripts/prepare.mjs test     … and sets tap up; both may be named
//
// A step is skipped when its output is there and was made from the same contents. Dates are not
// asked: a checkout gives every file a new one.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

process.chdir(join(import.meta.dirname, '..'))

const SQLITE = '../node_modules/better-sqlite3/build/Release/better_sqlite3.node'

class Failure extends Error {}

try {
  if (!packagesInstalled()) install()
  if (!sqliteLoads()) compileSqlite()
  for (const database of ['sqlite', 'postgresql']) generate(database)
  if (process.argv.includes('build')) build()
  if (process.argv.includes('test')) setUpTap()
} catch (error) {
  if (!(error instanceof Failure)) throw error
  console.error(`\n${error.message}`)
  process.exitCode = 1
}

/** Whether node_modules holds what package-lock.json asks for, as npm itself wrote down after its last success. */
function packagesInstalled () {
  if (!existsSync('node_modules/.package-lock.json')) return false
  const installed = readJson('node_modules/.package-lock.json').packages
  return Object.entries(readJson('package-lock.json').packages).every(([path, wanted]) => {
    const found = installed[path]
    // Optional packages are those of other platforms, which npm leaves out.
    if (!found) return path === '' || wanted.optional || wanted.os !== undefined
    return found.version === wanted.version && found.integrity === wanted.integrity
  })
}

function install () {
  console.error('Installing packages (once; takes a minute or two where SQLite has to be compiled) …')
  // What builds the service is a development dependency, also where NODE_ENV says production.
  npm('ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error')
}

/** False after a change of the Node version, and where npm did not run the package's install script. */
function sqliteLoads () {
  try {
    createRequire(import.meta.url)(SQLITE)
    return true
  } catch {
    return false
  }
}

function compileSqlite () {
  console.error(`Preparing SQLite for Node ${process.versions.node} …`)
  npm('rebuild', 'better-sqlite3', '--loglevel=error')
  // Asked in a new process, because this one keeps the binary that it failed to load.
  if (spawnSync(process.execPath, ['-e', `require('./scripts/${SQLITE}')`]).status === 0) return
  throw new Failure('better-sqlite3 cannot be loaded: npm did not build it for this Node. Try `npm rebuild better-sqlite3 --foreground-scripts`.')
}

/** One set of models, two databases: puts each datasource before the models and generates its client. */
function generate (database) {
  const sources = [`prisma/${database}/datasource.prisma`, 'prisma/models.prisma']
  const output = `src/generated/${database}`
  const schema = `prisma/${database}/schema.prisma`
  const stamp = fingerprint([...sources, 'node_modules/prisma/package.json'])
  if (existsSync(schema) && stampOf(output) === stamp) return

  console.error(`Generating the Prisma client for ${database} …`)
  writeFileSync(schema, sources.map(read).join('\n'))
  rmSync(output, { recursive: true, force: true })
  // `generate` never runs the native schema engine, but downloads it unless told where one is.
  node('prisma generate', ['node_modules/prisma/build/index.js', 'generate', '--schema', schema, '--no-hints'], {
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    PRISMA_HIDE_UPDATE_MESSAGE: '1',
    CHECKPOINT_DISABLE: '1'
  })
  writeStamp(output, stamp)
}

/** Compiles beside `dist` and swaps, so that a failed build leaves nothing half done. */
function build () {
  const stamp = fingerprint([...filesBelow('src'), 'tsconfig.json', 'tsconfig.build.json', 'node_modules/typescript/package.json'])
  if (stampOf('dist') === stamp) return

  console.error('Compiling src to dist …')
  const fresh = `.dist-${process.pid}`
  try {
    node('tsc', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--outDir', fresh])
    // What a browser gets is no TypeScript, and goes along as it is.
    for (const folder of ['home/page', 'openapi/page']) cpSync(`src/${folder}`, `${fresh}/${folder}`, { recursive: true })
    // npx runs it in place, and npm makes it executable only when it links it for the first time.
    chmodSync(`${fresh}/cli.js`, 0o755)
    writeStamp(fresh, stamp)
    rmSync('dist', { recursive: true, force: true })
    renameSync(fresh, 'dist')
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** tap compiles its plugins into one class, once; of them .taprc leaves out the TypeScript compiler. */
function setUpTap () {
  const compiled = 'node_modules/@tapjs/test/test-built/dist/esm/index.js'
  if (existsSync(compiled) && !read(compiled).includes('@tapjs/typescript')) return

  console.error('Setting up the test runner …')
  node('tap build', ['node_modules/tap/dist/esm/run.mjs', 'build'])
}

function npm (...args) {
  // npm names its own script to what it runs; by hand, the one on the PATH is meant (a .cmd on Windows).
  const own = process.env.npm_execpath
  const options = { stdio: ['ignore', 2, 2], env: { ...process.env, ...headers() } }
  const done = own?.endsWith('npm-cli.js')
    ? spawnSync(process.execPath, [own, ...args], options)
    : spawnSync('npm', args, { ...options, shell: process.platform === 'win32' })
  if (done.status !== 0) throw new Failure(`npm ${args[0]} failed${done.error ? `: ${done.error.message}` : ', see above.'}`)
}

/** Node's own headers, where it came with them: no download, and never those of another version. */
function headers () {
  const prefix = join(process.execPath, '..', '..')
  return existsSync(join(prefix, 'include/node/node.h')) ? { npm_config_nodedir: prefix } : {}
}

function node (name, args, settings = {}) {
  const done = spawnSync(process.execPath, args, { env: { ...process.env, ...settings }, encoding: 'utf8' })
  if (done.status !== 0) throw new Failure(`${name} failed:\n${done.stdout}${done.stderr}`)
}

function fingerprint (files) {
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${file}\0`).update(read(file)).update('\0')
  return hash.digest('hex')
}

function filesBelow (folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .sort()
}

function stampOf (folder) {
  return existsSync(`${folder}/.stamp`) ? readFileSync(`${folder}/.stamp`, 'utf8') : undefined
}

function writeStamp (folder, stamp) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/.stamp`, stamp)
}

function read (file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Failure(`Cannot read ${file} (${error.code}).`)
  }
}

function readJson (file) {
  return JSON.parse(read(file))
}
