// Only on SQLite: reads the imports of src.

import t from 'tap'
import { circle, readImports, valuesOf, type Imports } from './imports.ts'
import { drawPictures, resourceFolders, SHARED_FILES } from './modules.ts'
import { readTables, tablesNamed } from './tables.ts'

const imports = readImports()
const { inside, packages } = imports
const files = [...inside.keys()]
const resources = resourceFolders(files)

/** Modules that import each other, with the reason. Their files are in no circle all the same. */
const MUTUAL_MODULES: Array<[from: string, to: string, reason: string]> = [
  ['resources', 'deliveries', 'events and webhooks enqueue deliveries; a delivery reads events and updates messages']
]

/** Modules that know no resource. */
const LOW_MODULES = /^(database|http|plugins|monitoring)\//

/** What files of these modules import of a resource all the same, with the reason. */
const ALLOWED_IMPORTS: Array<[file: RegExp, target: RegExp, reason: string]> = [
  [/^plugins\/authentication\.ts$/, /^accounts\//, 'an API key belongs to an account, the tenant of every request']
]

/** Tables that files of these modules name all the same, with the reason. */
const ALLOWED_TABLES: Array<[file: RegExp, table: RegExp, reason: string]> = [
  [LOW_MODULES, /^(accounts|api_keys)$/, 'the tenant: every row belongs to an account, every request to an API key'],
  [
    /^database\//,
    /^(idempotency_records|events|deliveries)$/,
    'a group writes them in the transaction of its commands'
  ],
  [/^monitoring\/metrics\.ts$/, /^deliveries$/, 'the metric petstore_deliveries_total counts attempts, not rows']
]

/** Files that only say what things are: they import nothing but each other. */
const DEFINITIONS = new Set([
  ...SHARED_FILES,
  'accounts/api-key.ts',
  'database/postgresql/connection-url.ts',
  'http/conditional-requests.ts',
  'http/http-url.ts',
  'monitoring/instrumentation.ts',
  'start/explain-failure.ts'
])

/** The kinds of files in a resource's folder, from low to high: a file imports its own kind and lower ones. */
const KINDS = ['schemas.ts', 'errors.ts', 'rules.ts', 'queries.ts', 'commands.ts', 'routes.ts', 'resource.ts']

function importers (wanted: (target: string) => boolean): string[] {
  return files.filter((file) => [...inside.get(file)!].some(wanted))
}

function kindOf (file: string): number {
  const [folder = '', name = ''] = file.split('/')
  return resources.has(folder) ? KINDS.indexOf(name) : -1
}

/** Returns the imports without those of MUTUAL_MODULES in their first direction. */
function withoutMutual (all: Imports): Imports {
  return new Map([...all].map(([from, targets]) =>
    [from, new Set([...targets].filter((to) => !MUTUAL_MODULES.some(([a, b]) => a === from && b === to)))]))
}

t.test('no imports form a circle, those of types included', async (t) => {
  t.ok(files.length > 50)
  t.equal(circle(inside)?.join(' → '), undefined)
})

t.test('src has at most ten files at its root', async (t) => {
  t.ok(files.filter((file) => !file.includes('/')).length <= 10)
})

t.test('no folders import each other in a circle', async (t) => {
  const folders = drawPictures(imports)
  t.ok(folders.modules.size >= 8 && resources.size >= 8)
  t.equal(circle(withoutMutual(folders.modules))?.join(' → '), undefined)
  t.equal(circle(folders.resources)?.join(' → '), undefined)
  for (const [from, to] of MUTUAL_MODULES) {
    t.ok(folders.modules.get(from)?.has(to) && folders.modules.get(to)?.has(from), `${from} and ${to} import each other`)
  }
})

t.test('the files of a resource import only files of their own or a lower kind', async (t) => {
  for (const file of files) {
    const kind = kindOf(file)
    if (kind < 0) continue
    t.strictSame([...inside.get(file)!].filter((target) => kindOf(target) > kind), [], file)
  }
})

t.test('definitions import nothing but definitions', async (t) => {
  const definitions = files.filter((file) => DEFINITIONS.has(file))
  t.ok(definitions.length >= 6)
  for (const file of definitions) {
    t.strictSame(
      [...inside.get(file)!].filter((target) => !DEFINITIONS.has(target)),
      [],
      file
    )
  }
})

t.test('rules import nothing of ours but types, and nothing that does input or output', async (t) => {
  const rules = files.filter((file) => /\/(rules|retry-policy|address-policy)\.ts$/.test(file))
  t.ok(rules.length >= 3)
  for (const file of rules) t.strictSame(valuesOf(file).filter((name) => name !== 'ipaddr.js'), [], file)
})

t.test('only the app and its own resource import routes, and only processes import the app', async (t) => {
  for (const file of files.filter((name) => name.endsWith('/routes.ts'))) {
    const allowed = ['app.ts', file.replace('routes.ts', 'resource.ts')]
    const found = importers((target) => target === file)
    t.ok(found.length > 0, `${file} is registered`)
    t.strictSame(found.filter((importer) => !allowed.includes(importer)), [], file)
  }
  for (const file of importers((target) => target === 'app.ts')) {
    t.match(file, /^(start|cli)\/|^(public-api|create-store)\.ts$/)
  }
})

t.test('only the database imports Prisma', async (t) => {
  const found = files.filter(
    (file) =>
      [...packages.get(file)!].some((name) => name.startsWith('@prisma/')) ||
      [...inside.get(file)!].some((target) => /^generated\/(sqlite|postgresql)\//.test(target))
  )
  t.ok(found.length > 0)
  for (const file of found) t.match(file, /^database\//)
})

t.test('the client imports nothing of the service but what is generated from the document', async (t) => {
  const client = files.filter((file) => file.startsWith('client/'))
  t.ok(client.length >= 6)
  for (const file of client) {
    t.strictSame([...inside.get(file)!].filter((target) => !/^(generated\/)?client\//.test(target)), [], file)
  }
})

t.test('database, http, plugins and monitoring import no resource and no delivery', async (t) => {
  const knows = (target: string): boolean =>
    resources.has(target.split('/')[0]!) || target.startsWith('deliveries/') || target === 'resources.ts'
  const used = new Set<unknown>()
  for (const file of files.filter((file) => LOW_MODULES.test(file))) {
    const wrong = [...inside.get(file)!].filter(knows).filter((target) => {
      const exception = ALLOWED_IMPORTS.find(([from, to]) => from.test(file) && to.test(target))
      used.add(exception)
      return exception === undefined
    })
    t.strictSame(wrong, [], file)
  }
  for (const exception of ALLOWED_IMPORTS) { t.ok(used.has(exception), `${String(exception[0])} still needs its exception`) }
})

t.test('database, http, plugins and monitoring name no table of a resource in SQL or identifiers', async (t) => {
  const tables = readTables()
  t.ok(tables.length >= 11)
  for (const file of files.filter((file) => LOW_MODULES.test(file))) {
    const wrong = tablesNamed(file, tables).filter(
      (table) => !ALLOWED_TABLES.some(([from, name]) => from.test(file) && name.test(table))
    )
    t.strictSame(wrong, [], file)
  }
})

t.test('the search for tables finds them in the resources', async (t) => {
  const tables = readTables()
  for (const [folder, table] of [
    ['categories', 'categories'],
    ['pets', 'pets'],
    ['inventory', 'inventory_items'],
    ['orders', 'orders'],
    ['messages', 'messages']
  ]) {
    t.ok(
      files.some((file) => file.startsWith(`${folder}/`) && tablesNamed(file, tables).includes(table!)),
      `${table}`
    )
  }
})

t.test('no file has a name that says nothing', async (t) => {
  for (const file of files) t.notMatch(file, /(^|\/)(index|utils?|helpers?|types|common|misc)\.ts$/)
})
