import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { SqlDriverAdapter, SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils'
import type { SchemaEngine } from '@prisma/schema-engine-wasm'
import { databaseOf } from '../dialect.ts'
import { adapterFactory, hasHistory, rowsOf } from './history.ts'

/** The engine's own lock on PostgreSQL, which belongs to the connection: who holds it may take it again. */
const ADVISORY_LOCK = 72707369

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
