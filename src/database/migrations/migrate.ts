import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { SqlDriverAdapter, SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils'
import type { SchemaEngine } from '@prisma/schema-engine-wasm'
import { databaseOf, type DatabaseName } from '../dialect.ts'
import { isLocked } from '../error-classification.ts'

const FILTERS = { externalTables: [], externalEnums: [] }

/** How long a process that lost the race for the migration lock looks again, and the longest pause before it does, in ms. */
const LOCK_WAIT_MS = 60_000
const LOCK_PAUSE_MS = 200

/** The engine's own lock on PostgreSQL, which belongs to the connection: who holds it may take it again. */
const ADVISORY_LOCK = 72707369

/**
 * Brings the database at `url` up to the newest migration, creating a SQLite file that is not there.
 * Several processes may call it at once; one migrates, the others find it done. Each migration is a
 * transaction, so a process that is killed leaves none half-way.
 *
 * @returns the names of the migrations it applied, oldest first
 * @throws when a migration fails or the database cannot be reached
 */
export async function migrate (url: string): Promise<string[]> {
  const latest = Date.now() + LOCK_WAIT_MS
  for (;;) {
    try {
      return (await pendingMigrations(url)).length === 0 ? [] : await applyMigrations(url)
    } catch (error) {
      if (Date.now() > latest || !isLockedOut(error)) throw error
    }
    await sleep(Math.random() * LOCK_PAUSE_MS)
  }
}

/** Another process holds the lock, and may be done in a moment: the engine's P1002 on PostgreSQL, SQLITE_BUSY on SQLite. */
function isLockedOut (error: unknown): boolean {
  return isLocked(error) || /P1002|SQLITE_BUSY|SocketTimeout|database is locked/.test(String(error))
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
    if (!(await hasHistory(adapter))) return known
    const rows = await rowsOf(adapter, 'SELECT migration_name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL')
    const finished = new Set(rows.map(([name]) => name))
    return known.filter((name) => !finished.has(name))
  } finally {
    await adapter.dispose()
  }
}

async function rowsOf (adapter: SqlDriverAdapter, sql: string): Promise<unknown[][]> {
  return (await adapter.queryRaw({ sql, args: [], argTypes: [] })).rows
}

/** Whether any migration was ever begun in this database. */
async function hasHistory (adapter: SqlDriverAdapter): Promise<boolean> {
  const [[count] = []] = await rowsOf(adapter, adapter.provider === 'sqlite'
    ? "SELECT count(*) FROM sqlite_master WHERE name = '_prisma_migrations'"
    : "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name = '_prisma_migrations'")
  return Number(count) > 0
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
      await rollBackUnfinishedMigrations(adapter)
      return inTransactions(adapter)
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

/**
 * A migration that was begun and not finished has changed nothing: its process was killed, or it failed. The engine
 * would refuse to go on; noted as rolled back, it is applied anew. Under the lock, because another process may be at it.
 */
async function rollBackUnfinishedMigrations (adapter: SqlDriverAdapter): Promise<void> {
  const forget = markMigrationSql(adapter, 'rolled_back_at')
  if (adapter.provider === 'sqlite') {
    // The mode that the engine sets, too: this connection keeps the lock from here on. Foreign keys are judged at each
    // migration's end, because a table that is made anew is gone for a moment, and within a transaction this stays as it is.
    await adapter.executeScript('PRAGMA foreign_keys = OFF; PRAGMA main.locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT')
    if (await hasHistory(adapter)) await adapter.executeScript(forget)
  } else {
    const [[locked] = []] = await rowsOf(adapter, `SELECT pg_try_advisory_lock(${ADVISORY_LOCK})`)
    if (locked === true && await hasHistory(adapter)) await rowsOf(adapter, forget)
  }
}

/**
 * Runs each script, which is what the engine does with migrations alone, in one transaction with the note that it
 * is finished. By itself SQLite commits each statement, and Prisma's adapter for PostgreSQL cuts scripts at semicolons.
 */
function inTransactions (adapter: SqlDriverAdapter): SqlDriverAdapter {
  const execute = adapter.executeScript.bind(adapter)
  const finish = markMigrationSql(adapter, 'finished_at')
  adapter.executeScript = async (script) => {
    if (adapter.provider !== 'sqlite') {
      // PostgreSQL takes statements that are sent together for one transaction.
      await adapter.executeRaw({ sql: `${script}\n;${finish}`, args: [], argTypes: [] })
      return
    }
    try {
      await execute(`BEGIN IMMEDIATE;${script}\n;${finish}`)
      const [broken] = await rowsOf(adapter, 'PRAGMA foreign_key_check')
      if (broken !== undefined) throw new Error(`The migration leaves rows of ${String(broken[0])} without the row they refer to`)
      await execute('COMMIT')
    } catch (error) {
      await execute('ROLLBACK').catch(() => {})
      throw error
    }
  }
  return adapter
}

/** Notes how the migration that was begun has ended, with the time as the engine writes it. */
function markMigrationSql ({ provider }: SqlDriverAdapter, how: 'finished_at' | 'rolled_back_at'): string {
  const now = provider === 'sqlite' ? "strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')" : 'now()'
  return `UPDATE _prisma_migrations SET ${how} = ${now} WHERE finished_at IS NULL AND rolled_back_at IS NULL`
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
    const { SqliteAdapterFactory } = await import('../sqlite/adapter.ts')
    return new SqliteAdapterFactory(url)
  }
  const { PrismaPg } = await import('@prisma/adapter-pg')
  return new PrismaPg({ connectionString: url, max: 1, connectionTimeoutMillis: 10_000 })
}

function migrationsFolder (database: DatabaseName): string {
  return fileURLToPath(new URL(`../../../prisma/${database}/migrations`, import.meta.url))
}
