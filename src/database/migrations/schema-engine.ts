import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { SqlDriverAdapter, SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils'
import type { SchemaEngine } from '@prisma/schema-engine-wasm'
import { databaseOf } from '../dialect.ts'
import { quotedSchemaOf } from '../postgresql/session.ts'
import { adapterFactory, hasHistory, rowsOf } from './history.ts'

/** The key of the engine's own lock on PostgreSQL. A connection that holds the lock can acquire it again. */
const ADVISORY_LOCK = 72707369

/**
 * Runs a function with Prisma's own schema engine, compiled to WebAssembly, on a separate connection. The engine's
 * advisory lock on PostgreSQL lasts as long as that connection, so both are always released.
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
      await createSchema(adapter, url)
      await rollBackUnfinishedMigrations(adapter)
      return inTransactions(adapter)
    },
    connectToShadowDb: async () => await factory.connectToShadowDb()
  }
  const datamodel = `datasource db {\n  provider = "${databaseOf(url)}"\n}\n`
  let engine: SchemaEngine | undefined
  try {
    engine = await wasm.SchemaEngine.new(
      { datamodels: [['schema.prisma', datamodel]] }, () => {}, bindMigrationAwareSqlAdapterFactory(tracked)
    )
    return await use(engine)
  } finally {
    engine?.free()
    // Also when another process has the lock: an open connection would keep the others out.
    await Promise.all(connected.map(async (adapter) => { await adapter.dispose() }))
  }
}

/** Creates the configured schema of PostgreSQL if it is missing. Most users may use theirs, and create none. */
async function createSchema (adapter: SqlDriverAdapter, url: string): Promise<void> {
  if (adapter.provider === 'sqlite') return
  const [[exists] = []] = await rowsOf(adapter, 'SELECT current_schema() IS NOT NULL')
  if (exists !== true) await rowsOf(adapter, `CREATE SCHEMA IF NOT EXISTS ${quotedSchemaOf(url)}`)
}

/**
 * Marks unfinished migrations as rolled back, so that the engine applies them again instead of refusing to continue. An
 * unfinished migration has changed nothing: it failed, or its process was killed. Runs under the lock, because another
 * process may be migrating.
 */
async function rollBackUnfinishedMigrations (adapter: SqlDriverAdapter): Promise<void> {
  const markRolledBack = markMigrationSql(adapter, 'rolled_back_at')
  if (adapter.provider === 'sqlite') {
    // EXCLUSIVE is the mode that the engine sets, too: this connection keeps the lock from here on. Foreign keys are
    // checked at the end of each migration, because a table that a migration recreates is missing for a moment. SQLite
    // ignores this pragma within a transaction.
    await adapter.executeScript(`
      PRAGMA foreign_keys = OFF; PRAGMA main.locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT`)
    if (await hasHistory(adapter)) await adapter.executeScript(markRolledBack)
  } else {
    const [[locked] = []] = await rowsOf(adapter, `SELECT pg_try_advisory_lock(${ADVISORY_LOCK})`)
    if (locked === true && await hasHistory(adapter)) await rowsOf(adapter, markRolledBack)
  }
}

/**
 * Runs each script in one transaction with the update that marks the migration as finished. The engine runs scripts
 * only for migrations. Otherwise, SQLite would commit each statement, and Prisma's adapter for PostgreSQL splits
 * scripts at semicolons.
 */
function inTransactions (adapter: SqlDriverAdapter): SqlDriverAdapter {
  const execute = adapter.executeScript.bind(adapter)
  const markFinished = markMigrationSql(adapter, 'finished_at')
  adapter.executeScript = async (script) => {
    if (adapter.provider !== 'sqlite') {
      // PostgreSQL runs statements that are sent together as one transaction.
      await adapter.executeRaw({ sql: `${script}\n;${markFinished}`, args: [], argTypes: [] })
      return
    }
    try {
      await execute(`BEGIN IMMEDIATE;${script}\n;${markFinished}`)
      const [broken] = await rowsOf(adapter, 'PRAGMA foreign_key_check')
      if (broken !== undefined) {
        throw new Error(`The migration leaves rows of ${String(broken[0])} without the row they refer to`)
      }
      await execute('COMMIT')
    } catch (error) {
      await execute('ROLLBACK').catch(() => {})
      throw error
    }
  }
  return adapter
}

/** Returns an UPDATE that sets the end of the unfinished migration, with the time in the engine's format. */
function markMigrationSql ({ provider }: SqlDriverAdapter, how: 'finished_at' | 'rolled_back_at'): string {
  const now = provider === 'sqlite' ? "strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now')" : 'now()'
  return `UPDATE _prisma_migrations SET ${how} = ${now} WHERE finished_at IS NULL AND rolled_back_at IS NULL`
}

/** The part of WebAssembly that this file uses. Only TypeScript's DOM types declare it. */
declare const WebAssembly: {
  instantiate: (bytes: Uint8Array, imports: Record<string, unknown>) => Promise<WebAssemblyResult>
}

interface WebAssemblyResult { instance: { exports: Record<string, unknown> } }

type EngineModule = typeof import('@prisma/schema-engine-wasm/schema_engine_bg')

let loaded: Promise<EngineModule> | undefined

/** Wraps the engine's `setTimeout`: the timer of its advisory lock would keep a process alive for 10 s. */
function withoutLingeringTimers (glue: EngineModule): Record<string, unknown> {
  const imports = { ...glue } as unknown as Record<string, (...args: unknown[]) => unknown>
  for (const [name, original] of Object.entries(imports)) {
    if (!name.startsWith('__wbg_setTimeout_')) continue
    imports[name] = (...args) => (original(...args) as NodeJS.Timeout).unref()
  }
  return imports
}

/** Instantiates the engine by hand, because Node imports `.wasm` files as modules only with a flag. */
async function loadSchemaEngine (): Promise<EngineModule> {
  loaded ??= (async () => {
    const folder = dirname(createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm'))
    const glue = await import('@prisma/schema-engine-wasm/schema_engine_bg')
    const { instance } = await WebAssembly.instantiate(
      await readFile(join(folder, 'schema_engine_bg.wasm')),
      { './schema_engine_bg.js': withoutLingeringTimers(glue) }
    )
    glue.__wbg_set_wasm(instance.exports)
    ;(instance.exports.__wbindgen_start as () => void)()
    return glue
  })()
  return await loaded
}
