import { createRequire } from 'node:module'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { DatabaseSyncInstance, SqliteModule } from '@photostructure/sqlite'
import { OperationalError } from '../../operational-error.ts'

/** The package for versions of Node whose own module is missing or incomplete. Its 1.x is the last for Node 20. */
const PACKAGE = '@photostructure/sqlite'

type Driver = Pick<SqliteModule, 'DatabaseSync' | 'StatementSync'>

let driver: Driver | undefined
let isPackage = false

/**
 * Opens a SQLite file with `node:sqlite`, or with an npm package of the same interface where Node has no such module
 * (Node 20), or one without the two methods that Prisma's results need (Node 22 before 22.18).
 *
 * Node 22 and the first versions of Node 24 warn, once for each process, that the module is experimental.
 *
 * @throws OperationalError if this Node has no SQLite and the package cannot be loaded
 */
export function openFile (path: string): DatabaseSyncInstance {
  driver ??= builtIn() ?? installed()
  return new driver.DatabaseSync(path)
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
  const module = process.getBuiltinModule('node:sqlite') as Driver | undefined
  const methods = module?.StatementSync.prototype as object | undefined
  return methods !== undefined && 'columns' in methods && 'setReturnArrays' in methods ? module : undefined
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
    ? `${needed}. Run \`npm install ${PACKAGE}@1\`, or use Node 22.18 or newer.`
    : `${needed} and cannot load it: ${message.split('\n')[0]}. Use Node 22.18 or newer.`
}
