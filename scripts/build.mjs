// Bundles src to dist. With `--watch`, bundles the service again on each change, and restarts it with its demo store.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { runInNewContext } from 'node:vm'
import { build, context } from 'esbuild'
import { writeOperations } from './client-operations.mjs'

/** Files that browsers load as they are, and the viewer of the document, which is one file. */
const SENT = ['home/page', 'openapi/page', 'generated/viewer']
const VIEWER = 'node_modules/@scalar/fastify-api-reference'
const CLIENT = 'src/generated/client'

const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'))

/**
 * An installation has the packages of `dependencies`, and may have the optional peer. All others are bundled: Prisma
 * Client is 72 MB with the files of other databases, and TypeBox 200 small files, which each start would load.
 */
const { dependencies, peerDependencies } = readJson('package.json')
const external = Object.keys({ ...dependencies, ...peerDependencies }).filter((name) => name !== '@sinclair/typebox')

const shared = {
  bundle: true, format: 'esm', sourcemap: 'linked', sourcesContent: false, metafile: true, logLevel: 'warning'
}
const service = {
  ...shared,
  entryPoints: ['src/cli.ts', 'src/public-api.ts', 'src/database/sqlite/writer-program.ts'],
  // All files are in dist itself: modules find other files from there (src/folders.ts).
  entryNames: '[name]',
  outdir: 'dist',
  // A command loads only the modules that it needs. One file for each module takes twice as long to load.
  splitting: true,
  platform: 'node',
  target: 'node20',
  // The service can run in the process of a test, which replaces globals by fake timers and by the classes of jsdom.
  inject: ['scripts/held-globals.mjs'],
  external: external.flatMap((name) => [name, `${name}/*`]),
  // Lets CommonJS packages inside of the bundle load the modules of Node.
  banner: { js: "import { createRequire as $require } from 'node:module'\nconst require = $require(import.meta.url)" },
  plugins: [{ name: 'sent-files', setup }]
}
// One file without imports, also for browsers.
const client = {
  ...shared, entryPoints: ['src/client/client.ts'], outdir: 'dist/client', platform: 'browser', target: 'es2022'
}

let running
process.once('exit', () => { running?.kill() }).once('SIGTERM', process.exit)
if (process.argv.includes('--watch')) await (await context(service)).watch()
else await buildPackage()

function setup ({ onLoad, onEnd }) {
  // esbuild watches them as if the command line imported them.
  const watchFiles = SENT.flatMap((folder) => readdirSync(`src/${folder}`).map((name) => resolve('src', folder, name)))
  onLoad({ filter: /src.cli\.ts$/ }, ({ path }) => ({ contents: readFileSync(path), loader: 'ts', watchFiles }))
  onEnd(async ({ errors }) => {
    for (const folder of SENT) cpSync(`src/${folder}`, `dist/${folder}`, { recursive: true })
    if (!process.argv.includes('--watch') || errors.length > 0) return
    if (running?.kill()) await once(running, 'exit')
    running = spawn(process.execPath, ['dist/cli.js', 'start', '--demo'], { stdio: 'inherit' })
  })
}

async function buildPackage () {
  mkdirSync('src/generated/viewer', { recursive: true })
  writeFileSync('src/generated/viewer/standalone.js', viewer())
  cpSync(`${VIEWER}/LICENSE`, 'src/generated/viewer/LICENSE')
  mkdirSync(CLIENT, { recursive: true })
  writeFileSync(`${CLIENT}/operations.ts`, 'export const operations = {}, records = {}')
  await build(service)
  writeOperations('dist/cli.js', CLIENT)
  rmSync('dist', { recursive: true })
  const inputs = [await build(service), await build(client)].flatMap(({ metafile }) => Object.keys(metafile.inputs))
  // npx runs this file directly. npm makes it executable only when it first links the package.
  chmodSync('dist/cli.js', 0o755)
  writeFileSync('dist/LICENSES.txt', licensesOf([...inputs, `${VIEWER}/`]))
}

/**
 * Returns the viewer, a program that its package contains only as a string of a plugin. The plugin itself cannot run:
 * its dependencies need Node 22, and `overrides` of package.json selects older ones.
 */
function viewer () {
  const plugin = readFileSync(`${VIEWER}/dist/index.js`, 'utf8')
  const literal = /^var standalone_default = (".+");$/m.exec(plugin)?.[1]
  if (literal === undefined) throw new Error(`${VIEWER}/dist/index.js has no standalone_default.`)
  return runInNewContext(literal)
}

/** Returns the licenses of the packages that a bundle contains. They require that copies include their text. */
function licensesOf (files) {
  const folders = [...new Set(files.flatMap((file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []))]
  return folders.sort().map((folder) => {
    const { name, version, license } = readJson(`${folder}/package.json`)
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
    return `${name} ${version}: ${license}\n\n${file === undefined ? '' : readFileSync(`${folder}/${file}`, 'utf8')}\n`
  }).join('\n')
}
