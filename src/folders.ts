import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The folder of the modules: `src`, or `dist`, whose files are all in the folder itself. */
export const MODULES = import.meta.dirname

/** The folder of the package. */
export const PACKAGE = join(MODULES, '..')

interface PackageInfo {
  version: string
  /** The page for reports of problems. */
  bugs: string
}

/** What package.json says. No other file has the version. */
export const packageInfo = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8')) as PackageInfo
