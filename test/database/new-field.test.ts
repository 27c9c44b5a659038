import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import type * as appModule from '../../src/app.ts'
import type * as configModule from '../../src/config.ts'
import type * as migrateModule from '../../src/database/migrations/migrate.ts'
import { ROOT } from '../support/cli.ts'
import { database, freshDatabase } from '../support/database.ts'
import { differenceOf } from '../support/schema-difference.ts'

const TABLES = 'src/generated/tables.ts'

const COLUMN = '$&\n$1color String?'
const SCHEMA = "color: Type.Optional(Type.String({ description: 'Color', example: 'black' })),"
const FIELD = `$&\n$1${SCHEMA}`

/**
 * A new field of several resources as a maintainer writes it: what stands in the file, and what replaces it. The
 * schemas of pets share their fields; those of others name an optional field in each body and in the record.
 */
const CHANGES: Record<string, Array<[before: RegExp, after: string]>> = {
  'prisma/models/accounts.prisma': [[/^( +)email .*$/m, COLUMN], [/^( +)label .*$/m, COLUMN]],
  'prisma/models/lab.prisma': [[/^( +)operation .*$/m, COLUMN]],
  'prisma/models/limits.prisma': [[/^( +)fields .*$/m, COLUMN]],
  'prisma/models/pets.prisma': [[/^( +)name .*$/m, COLUMN]],
  'prisma/models/webhooks.prisma': [[/^( +)url .*$/m, COLUMN]],
  'src/accounts/schemas.ts': [[/^( +)email: .*$/mg, FIELD], [/^( +)label: .*$/mg, FIELD]],
  'src/lab/schemas.ts': [[/^( +)operation,$/mg, FIELD]],
  'src/limits/schemas.ts': [[/^( +)requests,$/mg, FIELD]],
  'src/pets/schemas.ts': [[/^( +)name: .*$/m, FIELD]],
  'src/webhooks/schemas.ts': [[/^( +)(?:url|url: Type.String\(ADDRESS\)),$/mg, FIELD], [/\{ url, /, `$&${SCHEMA} `]]
}

const TABLE_NAMES = ['accounts', 'api_keys', 'faults', 'account_limits', 'pets', 'webhooks']

/** The part of the service that is copied. */
const PARTS = ['package.json', 'prisma', 'prisma.config.ts', 'scripts/tables-generator.mjs', 'src']

t.test('a field takes a line of its model, the schemas of the API, and a migration', async (t) => {
  const copy = mkdtempSync(join(tmpdir(), 'petstore-field-'))
  t.teardown(() => { rmSync(copy, { recursive: true }) })
  for (const part of PARTS) cpSync(join(ROOT, part), join(copy, part), { recursive: true, verbatimSymlinks: true })
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  const textOf = (folder: string, file: string): string => readFileSync(join(folder, file), 'utf8')
  for (const [file, changes] of Object.entries(CHANGES)) {
    const text = changes.reduce((text, [before, after]) => text.replace(before, after), textOf(ROOT, file))
    writeFileSync(join(copy, file), text)
  }
  const added = (file: string): string[] => {
    const known = new Set(textOf(ROOT, file).split('\n'))
    return textOf(copy, file).split('\n').filter((line) => !known.has(line))
  }
  t.same(Object.keys(CHANGES).map((file) => added(file).length), [2, 1, 1, 1, 1, 4, 2, 2, 1, 3])

  const prisma = join(ROOT, 'node_modules/prisma/build/index.js')
  execFileSync(process.execPath, [prisma, 'generate', '--generator=tables'], { cwd: copy, stdio: 'pipe' })
  t.match(added(TABLES), TABLE_NAMES.flatMap(() =>
    [/^ +color: string \| null$/, /^ +color: \{ name: 'color', type: 'text'.* \},?$/]))
  const migration = await differenceOf('file::memory:', modelsOf(ROOT), modelsOf(copy))
  t.equal(migration, TABLE_NAMES.map((name) => `-- AlterTable\nALTER TABLE "${name}" ADD COLUMN "color" TEXT;\n`)
    .join('\n'), 'on PostgreSQL as well')
  const folder = join(copy, `prisma/${database}/migrations/99991231000000_color`)
  mkdirSync(folder)
  writeFileSync(join(folder, 'migration.sql'), migration)

  const load = async (file: string): Promise<object> => await import(pathToFileURL(join(copy, file)).href)
  const { buildApp } = await load('src/app.ts') as typeof appModule
  const { readConfig } = await load('src/config.ts') as typeof configModule
  const { migrate } = await load('src/database/migrations/migrate.ts') as typeof migrateModule
  const url = await freshDatabase(t)
  t.same(await migrate(url), ['99991231000000_color'])
  const app = await buildApp(readConfig({
    DATABASE_URL: url, LOG_LEVEL: 'silent', DELIVERY: 'false', LAB: 'true'
  }))
  t.teardown(async () => { await app.close() })
  let key = ''
  const send = async (
    method: 'GET' | 'POST' | 'PUT' | 'PATCH', url: string, body?: object | string, type = 'application/json'
  ): Promise<{ body: any, text: string }> => {
    const authorization = key === '' ? {} : { authorization: `Bearer ${key}` }
    const content = body === undefined ? {} : { 'content-type': type }
    const payload = typeof body === 'object' ? JSON.stringify(body) : body
    const { statusCode, body: text, headers } = await app.inject({
      method, url, headers: { ...authorization, ...content }, ...payload === undefined ? {} : { payload }
    })
    if (statusCode >= 300) throw new Error(`${method} ${url}: ${statusCode} ${text}`)
    return { text, body: /^application\/json/.test(String(headers['content-type'])) ? JSON.parse(text) : text }
  }
  const { body: { apiKey, ...account } } = await send('POST', '/accounts', { name: 'Ada', color: 'black' })
  key = apiKey
  t.match(account, { name: 'Ada', color: 'black' })
  t.same((await send('GET', '/account')).body, account)
  const { body: { id: categoryId } } = await send('POST', '/categories', { name: 'Cats' })
  const { body: pet } = await send('POST', '/pets', { name: 'Felix', categoryId, color: 'black' })
  t.match(pet, { name: 'Felix', color: 'black', status: 'available' })
  const path = `/pets/${pet.id}`
  t.same((await send('GET', path)).body, pet)
  t.same((await send('PATCH', path, { color: 'white' })).body, { ...pet, color: 'white' })
  const { color: _, ...bare } = pet
  t.same((await send('PATCH', path, { color: null })).body, bare)
  t.same((await send('PATCH', path, { color: 'red' })).body, { ...pet, color: 'red' })
  t.same((await send('GET', '/pets')).body, [{ ...pet, color: 'red' }])
  const { body: events } = await send('GET', '/events')
  t.match(events.at(-1), { type: 'pet.updated', data: { pet: { color: 'red' } } })

  const { body: { components: { schemas } } } = await send('GET', '/openapi.json')
  t.notOk(schemas.PetRow.required.includes('color'))
  const { body: { contentHash } } = await send('GET', '/lab/state')
  const { body: snapshot } = await send('POST', '/lab/snapshots', {})
  await send('PATCH', path, { color: 'green' })
  t.match((await send('GET', `/lab/snapshots/${snapshot.id}/diff`)).body.changed, [
    { before: { color: 'red' }, after: { color: 'green' } }
  ])
  t.not((await send('GET', '/lab/state')).body.contentHash, contentHash)
  const { text: lines } = await send('GET', `/lab/snapshots/${snapshot.id}/rows`)
  const { body: imported } = await send('POST', '/lab/snapshots/import', lines, 'application/x-ndjson')
  await send('POST', `/lab/snapshots/${imported.id}/restore`)
  t.match((await send('GET', '/pets')).body, [{ name: 'Felix', color: 'red' }])
  t.equal((await send('GET', '/lab/state')).body.contentHash, contentHash)

  const { body: { apiKey: _apiKey, ...other } } = await send('POST', '/account/keys', { color: 'black' })
  t.match(other, { readOnly: false, color: 'black' })
  t.same((await send('GET', `/account/keys/${other.id}`)).body, other)
  const target = { url: 'https://example.com/', color: 'black' }
  const { body: { secret: _secret, ...webhook } } = await send('POST', '/webhooks', target)
  t.match(webhook, { ...target, enabled: true })
  t.same((await send('PATCH', `/webhooks/${webhook.id}`, { color: 'white' })).body, { ...webhook, color: 'white' })
  t.same((await send('GET', '/webhooks')).body, [{ ...webhook, color: 'white' }])
  const { body: fault } = await send('POST', '/lab/faults', {
    operation: 'placeOrder', effect: { type: 'lose_answer' }, color: 'black'
  })
  t.match(fault, { color: 'black', after: 0, times: 1 })
  t.same((await send('GET', '/lab/faults')).body, [fault])
  const limits = { requests: 9, windowSeconds: 60 }
  t.match((await send('PUT', '/lab/limits', { ...limits, color: 'black' })).body, { ...limits, color: 'black' })
  t.notOk('color' in (await send('PUT', '/lab/limits', limits)).body, 'PUT replaces all fields')
  t.notOk('color' in (await send('GET', '/lab/limits')).body)
})

function modelsOf (folder: string): Array<{ path: string, content: string }> {
  return ['prisma/sqlite/datasource.prisma', ...readdirSync(join(folder, 'prisma/models')).map((file) =>
    `prisma/models/${file}`)].map((path) => ({ path, content: readFileSync(join(folder, path), 'utf8') }))
}
