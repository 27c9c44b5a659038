import { join } from 'node:path'

/** The folder of the modules: `src`, or `dist`, whose files are all in the folder itself. */
export const MODULES = import.meta.dirname

/** The folder of the package. */
export const PACKAGE = join(MODULES, '..')
