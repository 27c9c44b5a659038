// Writes what the client of the package (src/client) takes from the OpenAPI document. scripts/prepare.mjs runs it.
//
//   node scripts/generate-client.mjs operations   src/generated/client/openapi.json and operations.ts
//   node scripts/generate-client.mjs types STAMP  src/generated/client/openapi.ts, from openapi.json
//
// The first step needs only what the service needs. The second needs openapi-typescript, so that `npm start`, which
// compiles the client but does not check its types, does without.

import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = join(import.meta.dirname, '..')

const OUTPUT = join(ROOT, 'src/generated/client')

const NOTE = '// Generated from the OpenAPI document by scripts/generate-client.mjs.\n'

/** Modules find files beside them by `import.meta`, which is that of the source file. */
const keepSourcePaths = {
  name: 'keep-source-paths',
  setup ({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const values = { dirname: dirname(path), filename: path, url: pathToFileURL(path).href }
      const contents = readFileSync(path, 'utf8')
        .replace(/\bimport\.meta\.(dirname|filename|url)\b/g, (_all, name) => JSON.stringify(values[name]))
      return { contents, loader: 'ts' }
    })
  }
}

const [step, stamp] = process.argv.slice(2)
if (step === 'operations') await writeOperations()
else await writeTypes()

async function writeOperations () {
  const { buildApp, readConfig } = await importService()
  const app = await buildApp(readConfig({
    // The document does not depend on the database, and no connection is made. SQLite would have to be compiled first.
    DATABASE_URL: 'postgresql://127.0.0.1:1/none',
    LOG_LEVEL: 'silent',
    DELIVERY: 'false',
    // Operations that this setting turns off belong to the client all the same.
    LAB: 'true'
  }))
  await app.ready()
  const document = app.swagger()
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => describe(document, path, method, operation)))
  write('openapi.json', JSON.stringify(document))
  write('operations.ts', `${NOTE}export const operations = {\n${operations.join(',\n')}\n} as const\n`)
  // The service goes on trying to reach its database.
  process.exit()
}

/**
 * Imports the service from src, compiled. The client is no part of it, because the service must start before the table
 * of operations exists.
 */
async function importService () {
  const { build } = await import('esbuild')
  const program = join(ROOT, `.dist-${process.pid}.mjs`)
  try {
    await build({
      stdin: { contents: "export * from './app.ts'\nexport * from './config.ts'", resolveDir: join(ROOT, 'src') },
      outfile: program,
      bundle: true,
      packages: 'external',
      platform: 'node',
      format: 'esm',
      target: 'node20',
      logLevel: 'warning',
      plugins: [keepSourcePaths]
    })
    return await import(pathToFileURL(program).href)
  } finally {
    rmSync(program, { force: true })
  }
}

/** Returns an entry of the table with the facts of an operation: see OperationFacts in src/client/methods.ts. */
function describe (document, path, method, { operationId, summary, deprecated, parameters = [], requestBody }) {
  const all = parameters.map((parameter) => resolve(document, parameter))
  const ids = all.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
  const hasQuery = all.some((parameter) => parameter.in === 'query')
  if (ids.length > 1 || (hasQuery && requestBody !== undefined)) {
    throw new Error(`${operationId} has more arguments than a method of the client can take`)
  }
  const facts = {
    method,
    path,
    id: ids[0],
    sends: hasQuery ? 'query' : requestBody === undefined ? undefined : 'body',
    isKeyed: all.some((parameter) => parameter.in === 'header' && parameter.name === 'Idempotency-Key') || undefined
  }
  const comment = `${summary}.${deprecated === true ? ' @deprecated' : ''}`.replaceAll('*/', '')
  return `  /** ${comment} */\n  ${operationId}: ${JSON.stringify(facts)}`
}

function resolve (document, { $ref, ...object }) {
  return $ref === undefined ? object : $ref.slice(2).split('/').reduce((part, name) => part[name], document)
}

async function writeTypes () {
  // A package of test/package.json: `npm start` does not install it.
  const load = createRequire(join(ROOT, 'test/package.json'))
  const { default: openapiTypescript, astToString } = load('openapi-typescript')
  const document = JSON.parse(readFileSync(join(OUTPUT, 'openapi.json'), 'utf8'))
  // The named schemas are exported by their names, such as Pet.
  // A request may leave out a member that has a default.
  const options = { rootTypes: true, rootTypesNoSchemaPrefix: true, defaultNonNullable: false }
  write('openapi.ts', `${NOTE}// ${stamp}\n` + astToString(await openapiTypescript(document, options)))
}

function write (name, text) {
  writeFileSync(join(OUTPUT, name), text)
}
