// Only on SQLite: runs commands and samples of the pages over HTTP.

import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openFile } from '../../src/database/sqlite/driver.ts'
import { database, freshDatabase } from '../support/database.ts'
import { TSX } from '../support/tsx.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Prisma would make the whole table anew on SQLite for the last three. */
const COLUMNS = `
  color String?
  rank  BigInt @default(0)
  tag   Tag?    @relation(fields: [tagId], references: [id], onDelete: Restrict)
  tagId BigInt? @map("tag_id")

  @@index([tagId, accountId, id])`

const TAG = `model Tag {
  id         BigInt     @id @default(autoincrement())
  name       String
  parentId   BigInt?
  categories Category[]

  @@map("tags")
}
`

/** What the script writes of the ids of a new table. */
const IDS: Record<string, string> = {
  sqlite: '    "id" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("id" BETWEEN 1 AND 9007199254740991),\n',
  postgresql: '\nALTER SEQUENCE "tags_id_seq" MAXVALUE 9007199254740991;\n'
}

t.test(
  'npm run migration writes the difference to the committed models for both databases',
  { skip: database !== 'sqlite' && 'it is for both' },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'petstore-migration-'))
    t.teardown(() => {
      rmSync(folder, { recursive: true, force: true })
    })
    const sources = ['database', 'errors.ts', 'folders.ts', 'operational-error.ts'].map((path) => `src/${path}`)
    for (const path of ['package.json', 'scripts', 'prisma', ...sources, 'test/support']) {
      cpSync(join(ROOT, path), join(folder, path), { recursive: true })
    }
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    const run = (program: string, ...args: string[]) => spawnSync(program, args, { cwd: folder, encoding: 'utf8' })
    const migration = (...args: string[]) => run(process.execPath, TSX, 'scripts/migration.ts', ...args)
    run('git', 'init', '-q')
    run('git', 'add', 'prisma')
    run('git', '-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', 'commit', '-qm', 'models')

    t.match(migration('Add color'), { status: 1, stderr: /small letters/ })
    t.match(migration('add_category_color'), { status: 1, stderr: /same as in the last commit/ })
    const models = join(folder, 'prisma/models/categories.prisma')
    writeFileSync(
      models,
      readFileSync(models, 'utf8').replace('model Category {', `model Category {${COLUMNS}`)
    )
    writeFileSync(join(folder, 'prisma/models/tags.prisma'), TAG)
    run('git', 'add', 'prisma')
    const { status, stdout, stderr } = migration('add_category_color')
    t.equal(status, 0, stderr)
    for (const name of ['sqlite', 'postgresql']) {
      const migrations = readdirSync(join(folder, 'prisma', name, 'migrations'))
        .filter((entry) => /^\d{14}_/.test(entry))
        .sort()
      const last = migrations.at(-1)!
      t.match(last, /^\d{14}_add_category_color$/, 'the new one is the last')
      t.match(stdout, `Wrote prisma/${name}/migrations/${last}/migration.sql\n`)
      const script = readFileSync(join(folder, 'prisma', name, 'migrations', last, 'migration.sql'), 'utf8')
      t.ok(script.includes(IDS[name]!), script)
      t.match(script, /ADD COLUMN +"color" TEXT[,;]$/m)
      t.match(script, /ADD COLUMN +"rank" BIGINT NOT NULL DEFAULT 0[,;]$/m)
      t.match(script, /ADD COLUMN +"tag_id" BIGINT( REFERENCES "tags" \("id"\) ON DELETE RESTRICT .*)?;$/m)
      t.equal(script.match(/^CREATE INDEX /gm)?.length, 1, script)
      t.notMatch(script, /DROP TABLE/)
      if (name === 'sqlite') {
        const file = openFile((await freshDatabase(t)).slice('file:'.length))
        file.exec(script)
        file.close()
      }
    }

    run('git', 'add', 'prisma')
    run('git', '-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', 'commit', '-qm', 'tags')
    const related = '  parent Tag? @relation("Tags", fields: [parentId], references: [id])\n' +
      '  tags Tag[] @relation("Tags")\n'
    writeFileSync(join(folder, 'prisma/models/tags.prisma'), TAG.replace('  categories', `${related}  categories`))
    const second = migration('relate_tags')
    t.equal(second.status, 0, second.stderr)
    const [written] = second.stdout.match(/prisma\/sqlite\/.*\.sql/)!
    t.match(readFileSync(join(folder, written!), 'utf8'), 'FOREIGN KEY ("parentId")', 'what is no column is not lost')
  }
)
