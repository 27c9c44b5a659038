// npm run migration -- NAME: writes the migration from the models as they were committed to the models as they
// are, for both databases. What Prisma cannot say (CHECK, partial indexes, AUTOINCREMENT) is added by hand.

import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withSchemaEngine } from '../src/database/migrations/migrate.ts'
import { startPostgres } from '../test/support/postgres.ts'

process.chdir(join(import.meta.dirname, '..'))

const [name = ''] = process.argv.slice(2)
const committed = spawnSync('git', ['show', 'HEAD:prisma/models.prisma'], { encoding: 'utf8' })
const models = readFileSync('prisma/models.prisma', 'utf8')

if (!/^[a-z][a-z0-9_]*$/.test(name)) end('Name the migration in small letters, digits and underscores: npm run migration -- add_pet_tags')
if (committed.status !== 0) end('git cannot tell what the models were: there is no commit with prisma/models.prisma.')
if (committed.stdout === models) end('prisma/models.prisma is as it was committed: change it first.')

const time = new Date().toISOString().replace(/\D/g, '').slice(0, 14)
// On PostgreSQL the engine asks the server how it writes names.
const server = await startPostgres()
const scripts = {
  sqlite: await difference('sqlite', 'file::memory:'),
  postgresql: await difference('postgresql', server.url)
}
await server.stop()

for (const [database, script] of Object.entries(scripts)) {
  const folder = `prisma/${database}/migrations`
  // A name decides the order, also where the last one was dated ahead.
  const last = readdirSync(folder).filter((entry) => /^\d{14}_/.test(entry)).sort().at(-1)?.slice(0, 14) ?? ''
  const file = `${folder}/${last >= time ? BigInt(last) + 1n : time}_${name}/migration.sql`
  mkdirSync(join(file, '..'))
  writeFileSync(file, script)
  console.log(`Wrote ${file}`)
}

async function difference (database: string, url: string): Promise<string> {
  const datasource = readFileSync(`prisma/${database}/datasource.prisma`, 'utf8')
  const side = (text: string) => ({ tag: 'schemaDatamodel' as const, files: [{ path: 'schema.prisma', content: `${datasource}\n${text}` }] })
  return await withSchemaEngine(url, async (engine) => {
    const { stdout } = await engine.diff({
      from: side(committed.stdout),
      to: side(models),
      script: true,
      shadowDatabaseUrl: null,
      exitCode: null,
      filters: { externalTables: [], externalEnums: [] }
    } as Parameters<typeof engine.diff>[0])
    return stdout ?? ''
  })
}

function end (message: string): never {
  console.error(message)
  process.exit(1)
}
