import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { SqlDriverAdapter, SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils'
import type { SchemaEngine } from '@prisma/schema-engine-wasm'
import { databaseOf, type DatabaseName } from './dialect.ts'

const FILTERS = { externalTables: [], externalEnums: [] }

/** How often a process that lost the race for the migration lock looks again. */
const LOCK_ATTEMPTS = 6

/**
 * Brings the database at `url` up to the newest migration, creating a SQLite file that is not there.
 * Several processes may call it at once; one migrates, the others find it done.
 *
 * @returns the names of the migrations it applied, oldest first
 * @throws when a migration fails or the database cannot be reached
 */
export async function migrate (url: string): Promise<string[]> {
  for (let attempt = 1; ; attempt++) {
    if ((await pendingMigrations(url)).length === 0) return []
    try {
      return await applyMigrations(url)
    } catch (error) {
      // P1002: another process holds the advisory lock. It may be done by now.
      if (attempt === LOCK_ATTEMPTS || !String(error).includes('P1002')) throw error
    }
  }
}

/**
 * Names the migrations that this version of the service needs and the database has not finished.
 *
 * @throws when the database cannot be reached, or a migration stopped half-way in it
 */
export async function pendingMigrations (url: string): Promise<string[]> {
  const known = await migrationNames(databaseOf(url))
  const adapter = await (await adapterFactory(url)).connect()
  try {
    const table = adapter.provider === 'sqlite'
      ? "SELECT count(*) FROM sqlite_master WHERE name = '_prisma_migrations'"
      : "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = '_prisma_migrations'"
    const query = async (sql: string) => (await adapter.queryRaw({ sql, args: [], argTypes: [] })).rows
    const [count] = (await query(table))[0] ?? []
    if (Number(count) === 0) return known
    const rows = await query('SELECT migration_name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL')
    const finished = new Set(rows.map(([name]) => name))
    return known.filter((name) => !finished.has(name))
  } finally {
    await adapter.dispose()
  }
}

/** The migrations in the repository for one database, oldest first. */
export async function migrationNames (database: DatabaseName): Promise<string[]> {
  const entries = await readdir(migrationsFolder(database), { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name).sort()
}

async function applyMigrations (url: string): Promise<string[]> {
  const database = databaseOf(url)
  const folder = migrationsFolder(database)
  const migrationDirectories = await Promise.all((await migrationNames(database)).map(async (path) => ({
    path,
    migrationFile: {
      path: 'migration.sql',
      content: { tag: 'ok' as const, value: await readFile(`${folder}/${path}/migration.sql`, 'utf8') }
    }
  })))
  return await withSchemaEngine(url, async (engine) => {
    const { appliedMigrationNames } = await engine.applyMigrations({
      migrationsList: {
        baseDir: folder,
        lockfile: { path: 'migration_lock.toml', content: `provider = "${database}"\n` },
        shadowDbInitScript: '',
        migrationDirectories
      },
      filters: FILTERS
    })
    return appliedMigrationNames
  })
}

/**
 * Lends Prisma's own schema engine, compiled to WebAssembly, on a connection of its own. The engine's
 * advisory lock on PostgreSQL lasts as long as that connection, so both are always let go.
 */
export async function withSchemaEngine<T> (url: string, use: (engine: SchemaEngine) => Promise<T>): Promise<T> {
  const wasm = await loadSchemaEngine()
  const { bindMigrationAwareSqlAdapterFactory } = await import('@prisma/driver-adapter-utils')
  const factory = await adapterFactory(url)
  const connected: SqlDriverAdapter[] = []
  const tracked: SqlMigrationAwareDriverAdapterFactory = {
    provider: factory.provider,
    adapterName: factory.adapterName,
    connect: async () => {
      const adapter = await factory.connect()
      connected.push(adapter)
      return adapter
    },
    connectToShadowDb: async () => await factory.connectToShadowDb()
  }
  const datamodel = `datasource db {\n  provider = "${databaseOf(url)}"\n}\n`
  const engine = await wasm.SchemaEngine.new({ datamodels: [['schema.prisma', datamodel]] }, () => {}, bindMigrationAwareSqlAdapterFactory(tracked))
  try {
    return await use(engine)
  } finally {
    engine.free()
    await Promise.all(connected.map(async (adapter) => { await adapter.dispose() }))
  }
}

/** The few words of WebAssembly used here; Node's types leave them to the browser's. */
declare const WebAssembly: {
  instantiate: (bytes: Uint8Array, imports: Record<string, unknown>) => Promise<{ instance: { exports: Record<string, unknown> } }>
}

type EngineModule = typeof import('@prisma/schema-engine-wasm/schema_engine_bg')

let loaded: Promise<EngineModule> | undefined

/** Node cannot import `.wasm` files as modules without a flag, so the glue is wired by hand. */
async function loadSchemaEngine (): Promise<EngineModule> {
  loaded ??= (async () => {
    const entry = pathToFileURL(createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm'))
    const glue = await import('@prisma/schema-engine-wasm/schema_engine_bg')
    const { instance } = await WebAssembly.instantiate(
      await readFile(new URL('schema_engine_bg.wasm', entry)),
      { './schema_engine_bg.js': glue }
    )
    glue.__wbg_set_wasm(instance.exports)
    ;(instance.exports.__wbindgen_start as () => void)()
    return glue
  })()
  return await loaded
}

async function adapterFactory (url: string): Promise<SqlMigrationAwareDriverAdapterFactory> {
  if (databaseOf(url) === 'sqlite') {
    const { SqliteAdapterFactory } = await import('./sqlite.ts')
    return new SqliteAdapterFactory(url)
  }
  const { PrismaPg } = await import('@prisma/adapter-pg')
  return new PrismaPg({ connectionString: url, max: 1, connectionTimeoutMillis: 10_000 })
}

function migrationsFolder (database: DatabaseName): string {
  return fileURLToPath(new URL(`../../prisma/${database}/migrations`, import.meta.url))
}
