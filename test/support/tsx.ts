import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

/** The argument of `node` that loads TypeScript, for programs that a test starts in any folder. */
export const TSX = `--import=${pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href}`
