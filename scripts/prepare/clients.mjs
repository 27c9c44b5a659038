// Generates the Prisma clients.

import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { filesBelow, fingerprint, Failure, read, stampOf, writeStamp } from './files.mjs'

const MODELS = 'prisma/models'
const GENERATOR = 'node_modules/@prisma/client-generator-ts/package.json'

/** Generates the client of each database, unless it is up to date. */
export async function generateClients () {
  for (const database of ['sqlite', 'postgresql']) await generateClient(database)
}

/** Joins the datasource of a database with all models into one schema, and generates the client from it. */
async function generateClient (database) {
  const sources = [`prisma/${database}/datasource.prisma`, ...filesBelow(MODELS)]
  const output = `src/generated/${database}`
  const schema = `prisma/${database}/schema.prisma`
  const stamp = fingerprint([...sources, GENERATOR])
  if (existsSync(schema) && stampOf(output) === stamp) return

  console.error(`Generating the Prisma client for ${database} …`)
  writeFileSync(schema, sources.map(read).join('\n'))
  rmSync(output, { recursive: true, force: true })
  try {
    await runGenerator(schema)
  } catch (error) {
    throw new Failure(`The Prisma client for ${database} cannot be generated:\n${error.message}`)
  }
  writeStamp(output, stamp)
}

/**
 * Runs the generator that `prisma generate` runs, by the same calls. The package of that command brings 127 packages
 * and 200 MB for its other commands. Prisma promises no stable API of these two, so package.json pins them and the
 * client to one version.
 */
async function runGenerator (schema) {
  // Neither works as an ES module: their imports lack file extensions.
  const require = createRequire(import.meta.url)
  const { getGenerators, loadSchemaContext } = require('@prisma/internals')
  const { PrismaClientTsGenerator } = require('@prisma/client-generator-ts')
  const generators = await getGenerators({
    schemaContext: await loadSchemaContext({ schemaPath: { cliProvidedPath: schema }, printLoadMessage: false }),
    registry: { 'prisma-client': { type: 'in-process', generator: new PrismaClientTsGenerator() } },
    cliCommand: 'generate',
    skipDownload: true
  })
  for (const generator of generators) {
    await generator.generate()
    generator.stop()
  }
}
