// The configuration of Prisma's command line: `npx prisma studio`, `validate`, `format` and `generate`.

import { createRequire, register } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { PrismaConfig } from 'prisma'

const { DATABASE_URL: setting } = process.env
// The default of the service.
const url = setting === undefined || setting === '' ? 'file:./petstore.db' : setting
const isSqlite = url.startsWith('file:')
const command = process.argv[2] ?? ''

// Studio imports node:sqlite. Where Node has no such module, it gets the package of the same interface.
if (command === 'studio' && process.getBuiltinModule('node:sqlite') === undefined) {
  const url = pathToFileURL(createRequire(import.meta.url).resolve('@photostructure/sqlite')).href
  register(`data:text/javascript,${encodeURIComponent(`
    export const resolve = (name, context, next) =>
      name === 'node:sqlite' ? { url: '${url}', format: 'commonjs', shortCircuit: true } : next(name, context)
  `)}`)
}

// These commands want the path of Prisma's native schema engine, which they would download, and never run it.
if (['format', 'generate', 'studio', 'validate'].includes(command)) {
  process.env['PRISMA_SCHEMA_ENGINE_BINARY'] ??= process.execPath
}

// A folder for each database has its datasource, its migrations, and a link to the models.
const folder = join(import.meta.dirname, 'prisma', isSqlite ? 'sqlite' : 'postgresql')

export default {
  schema: folder,
  migrations: { path: join(folder, 'migrations') },
  // Studio takes the absolute path of a SQLite file only.
  datasource: { url: isSqlite ? `file://${resolve(url.slice('file:'.length))}` : url }
} satisfies PrismaConfig
