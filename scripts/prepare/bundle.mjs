// Bundles src to dist, and writes the types of the package.

import { chmodSync, cpSync, existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { posix, relative } from 'node:path'
import { Failure, filesBelow, fingerprint, read, readJson, runNode, stampOf, writeStamp } from './files.mjs'

/** Files that the service sends to browsers as they are. */
const SENT_FILES = ['home/page', 'openapi/page', 'generated/viewer']

/** Lets CommonJS packages inside of the bundle load the modules of Node. */
const REQUIRE = "import { createRequire as $createRequire } from 'node:module'\n" +
  'const require = $createRequire(import.meta.url)'

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

/**
 * Bundles the packages of `devDependencies`, with all that they import, because an installation does not have them.
 * The Prisma client is 72 MB with the files of five other databases. TypeBox is 200 small files, and each start would
 * load them all. The other packages are not bundled.
 */
const externalPackages = {
  name: 'external-packages',
  setup ({ onResolve }) {
    const { dependencies } = readJson('package.json')
    const installed = path => Object.keys(dependencies)
      .some(name => name !== '@sinclair/typebox' && (path === name || path.startsWith(`${name}/`)))
    onResolve({ filter: /^[^./]/ }, ({ path, kind, importer }) => {
      if (kind === 'entry-point') return
      if (isBuiltin(path)) return { path, external: true }
      // What a bundled package imports is in its own node_modules folder, perhaps in another version.
      if (!importer.includes('node_modules') && installed(path)) return { path, external: true }
    })
  }
}

/**
 * Bundles src to a new folder and then renames it to `dist`, so that a failed build does not change `dist`. Importing
 * one file for each module took at least twice as long.
 */
export async function build () {
  // The types of the client are written later than the bundle, which has no types.
  const sources = filesBelow('src').filter(file => !/generated.client.openapi\.(json|ts)$/.test(file))
  const stamp = fingerprint([...sources, ...filesBelow('scripts/prepare'), 'package-lock.json', 'tsconfig.json'])
  if (stampOf('dist') === stamp) return

  console.error('Compiling src to dist …')
  const { build } = await import('esbuild')
  const fresh = `.dist-${process.pid}`
  try {
    const { metafile } = await build({
      entryPoints: ['src/cli.ts', 'src/public-api.ts', 'src/start/server.ts', 'src/database/sqlite/writer-program.ts'],
      outbase: 'src',
      outdir: fresh,
      bundle: true,
      // A command loads only the modules that it needs.
      splitting: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      banner: { js: REQUIRE },
      sourcemap: 'linked',
      sourcesContent: false,
      metafile: true,
      logLevel: 'warning',
      plugins: [externalPackages, keepModulePaths]
    })
    // One file without imports, which browsers load as it is.
    const client = await build({
      entryPoints: ['src/client/client.ts'],
      outdir: `${fresh}/client`,
      bundle: true,
      platform: 'browser',
      format: 'esm',
      target: 'es2022',
      sourcemap: 'linked',
      sourcesContent: false,
      metafile: true,
      logLevel: 'warning'
    })
    for (const folder of SENT_FILES) cpSync(`src/${folder}`, `${fresh}/${folder}`, { recursive: true })
    writeFileSync(`${fresh}/LICENSES.txt`, licensesOf([metafile, client.metafile].flatMap(({ inputs }) => Object.keys(inputs))))
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

/** Returns the licenses of the packages that a bundle contains. They require that copies include their text. */
function licensesOf (files) {
  const folders = [...new Set(files.flatMap(file => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []))]
  return folders.sort().map(folder => {
    const { name, version, license } = readJson(`${folder}/package.json`)
    const file = readdirSync(folder).find(entry => /^licen[cs]e/i.test(entry))
    return `${name} ${version}: ${license}\n\n${file === undefined ? '' : read(`${folder}/${file}`)}\n`
  }).join('\n')
}

/** Writes the type declarations of the package to dist/types. */
export function declare () {
  const output = 'dist/types'
  const compiler = 'test/node_modules/typescript'
  const stamp = fingerprint([
    ...filesBelow('src'), 'tsconfig.json', 'tsconfig.types.json', `${compiler}/package.json`
  ])
  if (existsSync(output) && stampOf(output) === stamp) return

  console.error('Writing the type declarations …')
  rmSync(output, { recursive: true, force: true })
  runNode('tsc', [`${compiler}/bin/tsc`, '-p', 'tsconfig.types.json'])
  writeStamp(output, stamp)
}
