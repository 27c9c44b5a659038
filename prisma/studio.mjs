// The configuration of Prisma Studio: `petstore studio` passes the address of the database.

import { createRequire, register } from 'node:module'
import { pathToFileURL } from 'node:url'

// Studio imports node:sqlite. Where Node has no such module, it gets the package of the same interface.
if (process.getBuiltinModule('node:sqlite') === undefined) {
  const url = pathToFileURL(createRequire(import.meta.url).resolve('@photostructure/sqlite')).href
  register(`data:text/javascript,${encodeURIComponent(`
    export const resolve = (name, context, next) =>
      name === 'node:sqlite' ? { url: '${url}', format: 'commonjs', shortCircuit: true } : next(name, context)
  `)}`)
}

export default { datasource: { url: process.env.STUDIO_URL } }
