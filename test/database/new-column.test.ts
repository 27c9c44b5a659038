// Only on SQLite: generates code, and calls functions that use no database.

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { sqlite } from '../../src/database/sqlite/dialect.ts'
import { AccountRows, IdentityMap } from '../../src/database/unit-of-work/account-rows.ts'
import { allSql, insertSql, updateSql } from '../../src/database/unit-of-work/row-statements.ts'
import type * as tables from '../../src/generated/tables.ts'
import { ROOT } from '../support/cli.ts'
import { differenceOf } from '../support/schema-difference.ts'

const MODEL = 'categories.prisma'
const GENERATED = 'src/generated/tables.ts'

t.test('a nullable column takes a line in its model and a migration: statements and rows have it', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-column-'))
  t.teardown(() => { rmSync(folder, { recursive: true }) })
  const [schema, file] = [join(folder, 'prisma'), join(folder, GENERATED)]
  cpSync(join(ROOT, 'prisma/models'), schema, { recursive: true })
  mkdirSync(join(folder, 'src/generated'), { recursive: true })
  symlinkSync(join(ROOT, 'src/database'), join(folder, 'src/database'))
  const datasource = readFileSync(join(ROOT, 'prisma/sqlite/datasource.prisma'), 'utf8')
  writeFileSync(join(schema, 'datasource.prisma'), datasource.replace(`../../${GENERATED}`, file))
  const before = readFileSync(join(schema, MODEL), 'utf8')
  const after = before.replace(/^( +)description .*$/m, '$&\n$1color String?')
  writeFileSync(join(schema, MODEL), after)
  const prisma = join(ROOT, 'node_modules/prisma/build/index.js')
  const command = [prisma, 'generate', `--schema=${schema}`, '--generator=tables']
  execFileSync(process.execPath, command, { cwd: ROOT, stdio: 'pipe' })

  const known = new Set(readFileSync(join(ROOT, GENERATED), 'utf8').split('\n'))
  t.match(readFileSync(file, 'utf8').split('\n').filter((line) => !known.has(line)), [
    /^ +color: string \| null$/, /^ +color: \{ name: 'color', type: 'text'.* \},?$/
  ], 'no other table changes')
  t.equal(await migrationOf(before, after), 'ALTER TABLE "categories" ADD COLUMN "color" TEXT;')

  const { categories } = await import(pathToFileURL(file).href) as typeof tables
  // Statements are kept by these names, and other tests of the process had those of the real table.
  const dialect = { ...sqlite, name: 'copy' as 'sqlite' }
  t.match(allSql(dialect, categories, 'rows'), '.color AS "color"')
  t.match(updateSql(dialect, categories), /SET .*\bcolor = .*WHERE/s)
  t.match(insertSql(dialect, categories, ['id', 'accountId', 'name', 'color']), '(id, account_id, name, color)')
  const map = new IdentityMap()
  map.addIds(categories, [7])
  const rows = new AccountRows(map, 1, '2026-11-21T10:00:00.000Z')
  const inserted = rows.insert(categories, { name: 'Cats' })
  t.match(inserted, { id: 7, name: 'Cats', description: null, color: null, version: 1 })
  t.match(rows.update(categories, inserted, { color: 'green' } as object), { name: 'Cats', color: 'green' })
})

/** Returns the migration of SQLite from one model to another, on one line. */
async function migrationOf (before: string, after: string): Promise<string> {
  const datasource = 'datasource db {\n  provider = "sqlite"\n}\n'
  // The other models stay the same, so they do not matter: without them, the model has no relations.
  const files = (model: string) =>
    [{ path: 'schema.prisma', content: datasource + model.replace(/^ +(account|pets) .*$/gm, '') }]
  const script = await differenceOf('file::memory:', files(before), files(after))
  return script.replace(/^--.*$/gm, '').replace(/\s+/g, ' ').trim()
}
