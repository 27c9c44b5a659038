import { mkdtempSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { ROOT } from './jobs.ts'

/** Imports several test files into one process. */
const RUN_SEVERAL = 'test/runner/run-several.ts'

/** Test files as JavaScript, bundled with the modules of this project that they import. */
export interface Bundle {
  /** It must be deleted at the end. */
  folder: string
  /** The arguments of `node` that run test files, given by their paths from the project's root. */
  argumentsFor: (files: string[]) => string[]
}

/**
 * Compiles test files. Without it each test process would load some 300 files through the hooks of tsx: the tests of
 * the pets took 30 s instead of 18 on a slow machine. Packages are not bundled.
 */
export async function bundleTests (files: string[]): Promise<Bundle> {
  // Below the project's root, where Node finds the packages.
  const folder = mkdtempSync(join(ROOT, '.test-'))
  await build({
    absWorkingDir: ROOT,
    entryPoints: [RUN_SEVERAL, ...files],
    outbase: ROOT,
    outdir: folder,
    bundle: true,
    // Files that run in one process share the modules that they import.
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: 'linked',
    logLevel: 'warning',
    // Node's own conditions of `exports`, not those of bundlers.
    conditions: [],
    plugins: [keepSourcePaths, externalPackages]
  })
  const compiled = (file: string): string => join(folder, file.replace(/\.ts$/, '.js'))
  return {
    folder,
    argumentsFor (files) {
      const program = files.length === 1 ? [compiled(files[0]!)] : [compiled(RUN_SEVERAL), folder, ...files]
      return ['--enable-source-maps', ...program]
    }
  }
}

/**
 * Packages are not bundled. Node finds those of package.json from the folder of the bundle. Those of test/package.json
 * are in test/node_modules, so the bundle names their files.
 */
const externalPackages: Plugin = {
  name: 'external-packages',
  setup ({ onResolve, resolve }) {
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'test/package.json'), 'utf8')) as TestPackage
    const names = Object.keys(dependencies)
    onResolve({ filter: /^[^./]/ }, async ({ path, kind, pluginData }) => {
      if (pluginData === RESOLVING || kind === 'entry-point') return
      if (!names.some((name) => path === name || path.startsWith(`${name}/`))) return { path, external: true }
      const found = await resolve(path, { kind, resolveDir: join(ROOT, 'test'), pluginData: RESOLVING })
      return { path: pathToFileURL(found.path).href, external: true, errors: found.errors }
    })
  }
}

/** Marks the plugin's own question, which it must not answer itself. */
const RESOLVING = Symbol('resolving')

interface TestPackage { dependencies: Record<string, string> }

/** Keeps `import.meta` what it is in the source file: modules find files beside them, and programs to start, by it. */
const keepSourcePaths: Plugin = {
  name: 'keep-source-paths',
  setup ({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const values: Record<string, string> = {
        dirname: dirname(path), filename: path, url: pathToFileURL(path).href
      }
      const contents = readFileSync(path, 'utf8')
        .replace(/\bimport\.meta\.(dirname|filename|url)\b/g, (_all, name: string) => JSON.stringify(values[name]))
      return { contents, loader: 'ts' }
    })
  }
}
