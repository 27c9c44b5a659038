// Writes a migration for both databases: the difference between the committed models and the models in the
// working folder. The script also writes the ids of new tables, which Prisma's schema cannot express. The author
// adds the rest by hand, such as CHECK constraints and partial indexes.
//
//   npm run migration -- add_pet_tags

import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withSchemaEngine } from '../src/database/migrations/schema-engine.ts'
import { startPostgres } from '../test/support/postgres.ts'

interface SchemaFile { path: string, content: string }

type Scripts = Record<'sqlite' | 'postgresql', string>

const MODELS = 'prisma/models'

/** The largest integer that every JSON client reads exactly, 2^53-1. */
const MAX_ID = Number.MAX_SAFE_INTEGER

process.chdir(join(import.meta.dirname, '..'))

const [name = ''] = process.argv.slice(2)
const committed = readCommittedModels()
const current = readCurrentModels()

if (!/^[a-z][a-z0-9_]*$/.test(name)) {
  fail('Name the migration in small letters, digits and underscores: npm run migration -- add_pet_tags')
}
if (committed.length === 0) fail(`git has no committed models: commit the files of ${MODELS} first.`)
if (JSON.stringify(committed) === JSON.stringify(current)) {
  fail(`The models in ${MODELS} are the same as in the last commit: change them first.`)
}

const time = new Date().toISOString().replace(/\D/g, '').slice(0, 14)
// The schema engine asks the PostgreSQL server how it writes names.
const server = await startPostgres()
const scripts = completeIds({
  sqlite: await diffModels('sqlite', 'file::memory:'),
  postgresql: await diffModels('postgresql', server.url)
})
await server.stop()

for (const [database, script] of Object.entries(scripts)) {
  const folder = `prisma/${database}/migrations`
  // Migrations run in the order of their names, so the new name must sort last, even after a date in the future.
  const last = readdirSync(folder).filter((entry) => /^\d{14}_/.test(entry)).sort().at(-1)?.slice(0, 14) ?? ''
  const file = `${folder}/${last >= time ? BigInt(last) + 1n : time}_${name}/migration.sql`
  mkdirSync(join(file, '..'))
  writeFileSync(file, script)
  console.log(`Wrote ${file}`)
}

/** Returns the models of the last commit, sorted by path. The list is empty if there is no such commit. */
function readCommittedModels (): SchemaFile[] {
  const paths = git('ls-tree', '-r', '--name-only', 'HEAD', `${MODELS}/`).split('\n').filter((path) => path !== '')
  return paths.sort().map((path) => ({ path, content: git('show', `HEAD:${path}`) }))
}

function readCurrentModels (): SchemaFile[] {
  const paths = readdirSync(MODELS).map((entry) => `${MODELS}/${entry}`)
  return paths.sort().map((path) => ({ path, content: readFileSync(path, 'utf8') }))
}

/** Returns the output of a git command, or an empty text if the command fails. */
function git (...args: string[]): string {
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' })
  return status === 0 ? stdout : ''
}

async function diffModels (database: string, url: string): Promise<string> {
  const path = `prisma/${database}/datasource.prisma`
  const datasource = { path, content: readFileSync(path, 'utf8') }
  const schema = (models: SchemaFile[]) => ({ tag: 'schemaDatamodel' as const, files: [datasource, ...models] })
  return await withSchemaEngine(url, async (engine) => {
    const { stdout } = await engine.diff({
      from: schema(committed),
      to: schema(current),
      script: true,
      shadowDatabaseUrl: null,
      exitCode: null,
      filters: { externalTables: [], externalEnums: [] }
    } as Parameters<typeof engine.diff>[0])
    return stdout ?? ''
  })
}

/**
 * Completes the ids of new tables. On SQLite only an INTEGER PRIMARY KEY is the rowid, and only AUTOINCREMENT keeps it
 * from being given twice. On both databases ids end at MAX_ID. The script of PostgreSQL says which columns are ids.
 */
function completeIds ({ sqlite, postgresql }: Scripts): Scripts {
  for (const [, table, columns] of postgresql.matchAll(/^CREATE TABLE "(\w+)" \(([^;]*)/gm)) {
    const id = /^ *"(\w+)" BIGSERIAL /m.exec(columns!)?.[1]
    if (id === undefined) continue
    const written = new RegExp(`(^CREATE TABLE "${table}" \\([^;]*?"${id}") BIGINT NOT NULL PRIMARY KEY`, 'm')
    sqlite = sqlite.replace(written, `$1 INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("${id}" BETWEEN 1 AND ${MAX_ID})`)
    postgresql += `\nALTER SEQUENCE "${table}_${id}_seq" MAXVALUE ${MAX_ID};\n`
  }
  return { sqlite, postgresql }
}

function fail (message: string): never {
  console.error(message)
  process.exit(1)
}
