// Prepares a fresh clone. Each npm script runs it first, so that each script works as the first command after
// `git clone`. This file imports only modules of Node, because no package is installed before it runs.
//
//   node scripts/prepare.mjs              installs the packages and generates the Prisma clients
//   node scripts/prepare.mjs build        also compiles src to dist
//   node scripts/prepare.mjs build test   also compiles src to dist and sets up tap
//   node scripts/prepare.mjs client       also writes what the client takes from the OpenAPI document, with its types
//   node scripts/prepare.mjs build types  also compiles src to dist and writes the types of the package
//
// The script skips a step whose output exists and comes from the same contents. It compares contents and not
// file dates, because a checkout gives each file a new date.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync
} from 'node:fs'
import { createRequire } from 'node:module'
import { join, posix, relative } from 'node:path'

process.chdir(join(import.meta.dirname, '..'))

const SQLITE = '../node_modules/better-sqlite3/build/Release/better_sqlite3.node'

const MODELS = 'prisma/models'

/** What the client of the package takes from the OpenAPI document. */
const CLIENT = 'src/generated/client'

const GENERATOR = ['scripts/generate-client.mjs']

/**
 * Modules find files by their own path below src. The bundle keeps the paths below dist: its chunks are files of dist
 * itself. (start/server.js is not, and contains no such module.)
 */
const keepModulePaths = {
  name: 'keep-module-paths',
  setup ({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const module = relative('src', path).replaceAll('\\', '/')
      const contents = read(path)
        .replace(/\bimport\.meta\.url\b/g, `new URL('${module}', import.meta.url).href`)
        .replace(/\bimport\.meta\.dirname\b/g, `(import.meta.dirname + '/${posix.dirname(module)}')`)
      return { contents, loader: 'ts' }
    })
  }
}

/** TypeBox is 200 small files, and each start would load them all. The other packages are not bundled. */
const externalPackages = {
  name: 'external-packages',
  setup ({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
      if (kind !== 'entry-point' && !path.startsWith('@sinclair/typebox')) return { path, external: true }
    })
  }
}

class Failure extends Error {}

try {
  if (!packagesInstalled()) install()
  if (!sqliteLoads()) compileSqlite()
  for (const database of ['sqlite', 'postgresql']) generate(database)
  const isStep = (...names) => names.some((name) => process.argv.includes(name))
  if (isStep('build', 'client', 'test', 'types')) await describeOperations()
  if (isStep('build')) await build()
  if (isStep('client', 'types')) describeTypes()
  if (isStep('types')) declare()
  if (isStep('test')) setUpTap()
} catch (error) {
  if (!(error instanceof Failure)) throw error
  console.error(`\n${error.message}`)
  process.exitCode = 1
}

/** Compares package-lock.json with the list of installed packages that npm writes after a successful install. */
function packagesInstalled () {
  if (!existsSync('node_modules/.package-lock.json')) return false
  const installed = readJson('node_modules/.package-lock.json').packages
  return Object.entries(readJson('package-lock.json').packages).every(([path, wanted]) => {
    const found = installed[path]
    // npm does not install the optional packages of other platforms.
    if (!found) return path === '' || wanted.optional || wanted.os !== undefined
    return found.version === wanted.version && found.integrity === wanted.integrity
  })
}

function install () {
  console.error('Installing packages. This takes a minute or two if SQLite has to be compiled …')
  // The build needs development dependencies. npm omits them by default if NODE_ENV is production.
  npm('ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error')
}

/** Returns false after a change of the Node version, and if npm skipped the package's install script. */
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
  // A new process loads the new binary. This process keeps the binary that it failed to load.
  if (spawnSync(process.execPath, ['-e', `require('./scripts/${SQLITE}')`]).status === 0) return
  throw new Failure('npm did not build better-sqlite3 for this version of Node. ' +
    'To see the reason, run `npm rebuild better-sqlite3 --foreground-scripts`.')
}

/** Joins the datasource of a database with all models into one schema, and generates the client from it. */
function generate (database) {
  const sources = [`prisma/${database}/datasource.prisma`, ...filesBelow(MODELS)]
  const output = `src/generated/${database}`
  const schema = `prisma/${database}/schema.prisma`
  const stamp = fingerprint([...sources, 'node_modules/prisma/package.json'])
  if (existsSync(schema) && stampOf(output) === stamp) return

  console.error(`Generating the Prisma client for ${database} …`)
  writeFileSync(schema, sources.map(read).join('\n'))
  rmSync(output, { recursive: true, force: true })
  // `prisma generate` does not run the native schema engine. It downloads the engine unless this variable is set.
  node('prisma generate', ['node_modules/prisma/build/index.js', 'generate', '--schema', schema, '--no-hints'], {
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    PRISMA_HIDE_UPDATE_MESSAGE: '1',
    CHECKPOINT_DISABLE: '1'
  })
  writeStamp(output, stamp)
}

/**
 * Writes the table of operations for the client of the package. It comes from the OpenAPI document, which the service
 * builds when it starts.
 */
async function describeOperations () {
  const sources = filesBelow('src').filter((file) => !/^src.(client|generated.client)\b/.test(file))
  const stamp = fingerprint([...sources, ...GENERATOR, 'node_modules/esbuild/package.json'])
  if (existsSync(`${CLIENT}/operations.ts`) && stampOf(CLIENT) === stamp) return

  console.error('Reading the operations for the client …')
  mkdirSync(CLIENT, { recursive: true })
  node('The client', [...GENERATOR, 'operations'])
  writeStamp(CLIENT, stamp)
}

/** Writes the types of the client. Compiling the client does not need them. */
function describeTypes () {
  const [document, output] = [`${CLIENT}/openapi.json`, `${CLIENT}/openapi.ts`]
  const stamp = fingerprint([document, ...GENERATOR, 'node_modules/openapi-typescript/package.json'])
  if (existsSync(output) && readFileSync(output, 'utf8').includes(stamp)) return

  console.error('Writing the types of the client …')
  node('openapi-typescript', [...GENERATOR, 'types', stamp])
}

/**
 * Bundles src to a new folder and then renames it to `dist`, so that a failed build does not change `dist`. Importing
 * one file for each module took at least twice as long.
 */
async function build () {
  const stamp = fingerprint([
    ...filesBelow('src'), 'scripts/prepare.mjs', 'tsconfig.json', 'node_modules/esbuild/package.json'
  ])
  if (stampOf('dist') === stamp) return

  console.error('Compiling src to dist …')
  const { build } = await import('esbuild')
  const fresh = `.dist-${process.pid}`
  try {
    await build({
      entryPoints: ['src/cli.ts', 'src/public-api.ts', 'src/start/server.ts'],
      outbase: 'src',
      outdir: fresh,
      bundle: true,
      // A command loads only the modules that it needs.
      splitting: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      sourcemap: 'linked',
      sourcesContent: false,
      logLevel: 'warning',
      plugins: [externalPackages, keepModulePaths]
    })
    // One file without imports, which browsers load as it is.
    await build({
      entryPoints: ['src/client/client.ts'],
      outdir: `${fresh}/client`,
      bundle: true,
      platform: 'browser',
      format: 'esm',
      target: 'es2022',
      sourcemap: 'linked',
      sourcesContent: false,
      logLevel: 'warning'
    })
    for (const folder of ['home/page', 'openapi/page']) {
      cpSync(`src/${folder}`, `${fresh}/${folder}`, { recursive: true })
    }
    // npx runs this file directly. npm makes it executable only when it first links the package.
    chmodSync(`${fresh}/cli.js`, 0o755)
    writeStamp(fresh, stamp)
    rmSync('dist', { recursive: true, force: true })
    renameSync(fresh, 'dist')
  } catch (error) {
    throw new Failure(`The build failed: ${error.message}`)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** Writes the type declarations of the package to dist/types. */
function declare () {
  const output = 'dist/types'
  const configuration = ['tsconfig.json', 'tsconfig.types.json', 'node_modules/typescript/package.json']
  const stamp = fingerprint([...filesBelow('src'), ...configuration])
  if (stampOf(output) === stamp) return

  console.error('Writing the type declarations …')
  rmSync(output, { recursive: true, force: true })
  node('tsc', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.types.json'])
  writeStamp(output, stamp)
}

/** Compiles tap's class from the plugins that .taprc names. */
function setUpTap () {
  const compiled = 'node_modules/@tapjs/test/test-built'
  const stamp = fingerprint(['.taprc', 'node_modules/tap/package.json', 'node_modules/@tapjs/test/package.json'])
  if (existsSync(`${compiled}/dist/esm/index.js`) && stampOf(compiled) === stamp) return

  console.error('Setting up the test runner …')
  node('tap build', ['node_modules/tap/dist/esm/run.mjs', 'build'])
  writeStamp(compiled, stamp)
}

function npm (...args) {
  // npm sets npm_execpath in the scripts that it runs. Without it, use npm from the PATH, a .cmd file on Windows.
  const own = process.env.npm_execpath
  // npm_config_jobs lets node-gyp compile SQLite on all cores.
  const options = { stdio: ['ignore', 2, 2], env: { ...process.env, ...headers(), npm_config_jobs: 'max' } }
  const done = own?.endsWith('npm-cli.js')
    ? spawnSync(process.execPath, [own, ...args], options)
    : spawnSync('npm', args, { ...options, shell: process.platform === 'win32' })
  if (done.status === 0) return
  throw new Failure(`npm ${args[0]} failed${done.error ? `: ${done.error.message}` : '. Its output is above.'}`)
}

/** Points node-gyp to the headers beside Node, if they exist: they need no download and match the version. */
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
    throw new Failure(`The file ${file} cannot be read (${error.code}).`)
  }
}

function readJson (file) {
  return JSON.parse(read(file))
}
