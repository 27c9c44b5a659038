import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { PrismaPg } from '@prisma/adapter-pg'
import { bindMigrationAwareSqlAdapterFactory, type SqlDriverAdapter } from '@prisma/driver-adapter-utils'
import { databaseOf } from '../../src/database/dialect.ts'
import { sqliteAdapterFactory } from '../../src/database/sqlite/adapter.ts'

/** The part of WebAssembly that this file uses. Only TypeScript's DOM types declare it. */
declare const WebAssembly: {
  instantiate: (bytes: Uint8Array, imports: Record<string, unknown>) => Promise<{
    instance: { exports: Record<string, unknown> }
  }>
}

interface SchemaFile { path: string, content: string }

/**
 * Returns the SQL that changes a database of one Prisma schema to another, by Prisma's own schema engine, compiled to
 * WebAssembly: `prisma migrate diff` needs it as a native program, which Prisma downloads.
 *
 * @param url a database, which stays as it is: the engine asks PostgreSQL how it writes names
 */
export async function differenceOf (url: string, from: SchemaFile[], to: SchemaFile[]): Promise<string> {
  const provider = databaseOf(url)
  const factory = provider === 'sqlite' ? sqliteAdapterFactory(url) : new PrismaPg({ connectionString: url })
  const connected: SqlDriverAdapter[] = []
  const connect = async (): Promise<SqlDriverAdapter> => {
    const adapter = await factory.connect()
    connected.push(adapter)
    return adapter
  }
  const { provider: name, adapterName } = factory
  const { SchemaEngine } = await (loaded ??= loadSchemaEngine())
  const engine = await SchemaEngine.new(
    { datamodels: [['schema.prisma', `datasource db {\n  provider = "${provider}"\n}\n`]] }, () => {},
    bindMigrationAwareSqlAdapterFactory({ provider: name, adapterName, connect, connectToShadowDb: connect }))
  const schema = (files: SchemaFile[]) => ({ tag: 'schemaDatamodel' as const, files })
  const filters = { externalTables: [], externalEnums: [] }
  const options = { from: schema(from), to: schema(to), script: true, shadowDatabaseUrl: null, exitCode: null, filters }
  try {
    return (await engine.diff(options as Parameters<typeof engine.diff>[0])).stdout ?? ''
  } finally {
    for (const adapter of connected) await adapter.dispose()
  }
}

let loaded: ReturnType<typeof loadSchemaEngine> | undefined

/**
 * Instantiates the engine by hand, because Node imports `.wasm` files as modules only with a flag. Its timers, such as
 * the one of its lock, keep no process alive.
 */
async function loadSchemaEngine (): Promise<typeof import('@prisma/schema-engine-wasm/schema_engine_bg')> {
  const folder = dirname(createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm'))
  const glue = await import('@prisma/schema-engine-wasm/schema_engine_bg')
  const imports = { ...glue } as unknown as Record<string, (...args: unknown[]) => unknown>
  for (const [name, call] of Object.entries(imports)) {
    if (name.startsWith('__wbg_setTimeout_')) imports[name] = (...args) => (call(...args) as NodeJS.Timeout).unref()
  }
  const { instance } = await WebAssembly.instantiate(
    await readFile(join(folder, 'schema_engine_bg.wasm')), { './schema_engine_bg.js': imports })
  glue.__wbg_set_wasm(instance.exports)
  ;(instance.exports['__wbindgen_start'] as () => void)()
  return glue
}
