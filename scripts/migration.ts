// `npm run migration -- add_pet_tags` writes a migration for both databases: the difference between the models of the
// last commit and those of the working folder. The author adds what Prisma's schema cannot express, such as CHECKs.

import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { startPostgres } from '../test/support/postgres.ts'
import { differenceOf } from '../test/support/schema-difference.ts'

const MODELS = 'prisma/models'
const [name = ''] = process.argv.slice(2)
if (!/^[a-z][a-z0-9_]*$/.test(name)) throw new Error('Name the migration in small letters, digits and underscores.')

const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' })
const committed = git('ls-tree', '--name-only', 'HEAD', `${MODELS}/`).split('\n').filter((path) => path !== '')
const from = committed.map((path) => ({ path, content: git('show', `HEAD:${path}`) }))
const to = readdirSync(MODELS).map((file) => `${MODELS}/${file}`)
  .map((path) => ({ path, content: readFileSync(path, 'utf8') }))

// The schema engine asks the PostgreSQL server how it writes names.
const server = await startPostgres()
const postgresql = await difference('postgresql', server.url)
await server.stop()
const sqlite = await difference('sqlite', 'file::memory:')
if (postgresql.trim() === '-- This is an empty migration.') throw new Error(`${MODELS} is the same as in the last commit.`)

// Only an INTEGER PRIMARY KEY is SQLite's rowid, only AUTOINCREMENT never gives an id again, and ids end at 2^53-1, the
// largest integer that every JSON client reads. Prisma's schema can say none of it.
const ids = [...postgresql.matchAll(/^CREATE TABLE "(\w+)" \(\n *"(\w+)" BIGSERIAL /gm)]
write('sqlite', ids.reduce((script, [, table, id]) => script.replace(
  `CREATE TABLE "${table}" (\n    "${id}" BIGINT NOT NULL PRIMARY KEY`,
  `CREATE TABLE "${table}" (\n    "${id}" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("${id}" BETWEEN 1 AND ${2 ** 53 - 1})`
), withoutRebuilds(sqlite, postgresql)))
write('postgresql', postgresql + ids.map(([, table, id]) =>
  `\nALTER SEQUENCE "${table}_${id}_seq" MAXVALUE ${2 ** 53 - 1};\n`).join(''))

/**
 * Returns the script of SQLite with the new columns of tables. Prisma makes a table anew for a column that is required
 * or refers to another table: without what an author has added to it. The script of PostgreSQL says what has changed. A
 * script that does more than to add columns and indexes stays as Prisma wrote it.
 */
function withoutRebuilds (sqlite: string, postgresql: string): string {
  if (/^(DROP|ALTER) INDEX /m.test(postgresql)) return sqlite
  return sqlite.replace(/^-- RedefineTables\n[^]*?^PRAGMA defer_foreign_keys=OFF;$/m, (block) => {
    const statements: string[] = []
    for (const [, table, definition] of block.matchAll(/^CREATE TABLE "new_(\w+)" \(\n([^]*?)\n\);$/gm)) {
      const changes = (postgresql.match(new RegExp(`^ALTER TABLE "${table}" [^;]*;$`, 'gm')) ?? []).join('\n')
      const added = Array.from(changes.matchAll(/\bADD COLUMN +"(\w+)"/g), ([, name]) => name!)
      const foreignKeys = Array.from(changes.matchAll(/\bFOREIGN KEY \("(\w+)"\)/g), ([, name]) => name!)
      const addsOnly = added.length > 0 && foreignKeys.every((name) => added.includes(name))
      if (!addsOnly || /\b(DROP|ALTER COLUMN|RENAME)\b/.test(changes)) return block
      for (const name of added) {
        const [, column] = new RegExp(`^ +("${name}" .*?),?$`, 'm').exec(definition!)!
        const [, parent = ''] = new RegExp(`FOREIGN KEY \\("${name}"\\)( REFERENCES .*?),?$`, 'm').exec(definition!) ?? []
        const isRequired = / NOT NULL/.test(column!)
        // SQLite adds no such column.
        if (isRequired && (parent !== '' || !/ DEFAULT /.test(column!))) return block
        if (/ DEFAULT CURRENT_/.test(column!)) return block
        statements.push(`ALTER TABLE "${table}" ADD COLUMN ${column}${parent};`)
      }
      const indexes = block.match(new RegExp(`^CREATE (UNIQUE )?INDEX .* ON "${table}".*;$`, 'gm')) ?? []
      statements.push(...indexes.filter((index) => postgresql.includes(index)))
    }
    return `-- AlterTable\n${statements.join('\n')}`
  })
}

async function difference (database: string, url: string): Promise<string> {
  const path = `prisma/${database}/datasource.prisma`
  const datasource = { path, content: readFileSync(path, 'utf8') }
  return await differenceOf(url, [datasource, ...from], [datasource, ...to])
}

function write (database: string, script: string): void {
  const folder = `prisma/${database}/migrations`
  // Migrations run in the order of their names: the new one must be the last, even after a date in the future.
  const last = readdirSync(folder).filter((entry) => /^\d{14}_/.test(entry)).sort().at(-1)?.slice(0, 14) ?? '0'
  const now = BigInt(new Date().toISOString().replace(/\D/g, '').slice(0, 14))
  const time = now > BigInt(last) ? now : BigInt(last) + 1n
  mkdirSync(`${folder}/${time}_${name}`)
  writeFileSync(`${folder}/${time}_${name}/migration.sql`, script)
  console.log(`Wrote ${folder}/${time}_${name}/migration.sql`)
}
