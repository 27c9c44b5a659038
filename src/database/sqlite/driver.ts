import { createRequire } from 'node:module'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { DatabaseSyncInstance, DatabaseSyncOptions, SqliteModule } from '@photostructure/sqlite'
import { OperationalError } from '../../operational-error.ts'

/** The package for versions of Node whose own module is missing or too old. Its 1.x is the last for Node 20. */
const PACKAGE = '@photostructure/sqlite'

/** The minor version of SQLite 3 that has `jsonb_each`: without it, an insert takes 1.3 µs more for each row. */
const MIN_SQLITE_MINOR = 51

/** The first versions of Node that have it. */
const NODE_WITH_SQLITE = 'Node 22.22.2, 24.13.1 or newer'

type Driver = Pick<SqliteModule, 'DatabaseSync'>

let driver: Driver | undefined
let isPackage = false

/**
 * Opens a SQLite file with `node:sqlite`, or with an npm package of the same interface where Node has no such module
 * (Node 20), or an older SQLite than the service needs.
 *
 * @throws OperationalError if this Node has no SQLite and the package cannot be loaded
 */
export function openFile (path: string, options: DatabaseSyncOptions = {}): DatabaseSyncInstance {
  driver ??= builtIn() ?? installed()
  return new driver.DatabaseSync(path, options)
}

let gc: (() => void) | undefined

/**
 * Makes SQLite give up the files that were closed, with their locks, in 4 to 90 ms. The package finalizes a statement
 * only when the garbage collector takes it; until then SQLite keeps the file open.
 */
export async function releaseClosedFiles (): Promise<void> {
  if (!isPackage) return
  await setImmediate()
  if (gc === undefined) {
    setFlagsFromString('--expose-gc')
    gc = runInNewContext('gc') as () => void
  }
  gc()
  // Finalizers of native objects run after the current turn of the event loop.
  await setImmediate()
}

function builtIn (): Driver | undefined {
  const [major = 0, minor = 0] = (process.versions['sqlite'] ?? '').split('.').map(Number)
  const isNewEnough = major > 3 || (major === 3 && minor >= MIN_SQLITE_MINOR)
  return isNewEnough ? loadQuietly() : undefined
}

/** Loads the module without the warning of Node 22 and the first versions of Node 24 that it is experimental. */
function loadQuietly (): Driver {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it is put back
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:sqlite') as Driver
  } finally {
    process.emitWarning = emitWarning
  }
}

function installed (): Driver {
  try {
    // Not an import, so that neither the bundle nor PostgreSQL needs the package.
    const module = createRequire(import.meta.url)(PACKAGE) as Driver
    isPackage = true
    return module
  } catch (cause) {
    throw new OperationalError(explain(cause as NodeJS.ErrnoException), { cause })
  }
}

/** A package that is there but cannot be loaded lacks a native part for this machine: another install does not help. */
function explain ({ code, message }: NodeJS.ErrnoException): string {
  const needed = `Node ${process.versions.node} needs the npm package ${PACKAGE} for SQLite`
  return code === 'MODULE_NOT_FOUND'
    ? `${needed}. Run \`npm install ${PACKAGE}@1\`, or use ${NODE_WITH_SQLITE}.`
    : `${needed} and cannot load it: ${message.split('\n')[0]}. Use ${NODE_WITH_SQLITE}.`
}
