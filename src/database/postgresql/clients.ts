import { PrismaPg } from '@prisma/adapter-pg'
import type { SqlDriverAdapter, SqlQueryable } from '@prisma/driver-adapter-utils'
import { PrismaClient } from '../../generated/postgresql/client.ts'
import { OpenTransaction } from '../open-transaction.ts'
import { type Database, type DatabaseOptions } from '../database.ts'
import { createClient, type Client, type ClientOptions } from '../prisma-client.ts'
import type { Connection } from '../statements.ts'
import { createTransact, type TransactionalAdapter } from '../transact.ts'
import { ConnectionPool } from './connection-pool.ts'
import { postgresql } from './dialect.ts'
import { schemaOf } from './session.ts'
import type { TransactionClient } from './transaction-client.ts'

/** Transactions in flight at once: one that waits for another process's locks does not block the rest. */
const MAX_WRITERS = 3

/** Opens two pools of connections, for reads and for transactions: reads that take long leave the writers theirs. */
export async function openPostgresql ({ url, pool, timeout }: DatabaseOptions): Promise<Database> {
  const writers = Math.min(MAX_WRITERS, Math.max(1, Math.floor(pool / 2)))
  const readers = Math.max(1, pool - writers)
  const listeners: Array<() => void> = []
  const onStarved = (): void => { for (const listener of listeners) listener() }
  const pools = {
    reading: new ConnectionPool(url, { size: readers, timeout, onStarved }),
    writing: new ConnectionPool(url, { size: writers, timeout, onStarved })
  }
  pools.reading.partner = pools.writing
  pools.writing.partner = pools.reading
  const reading = await connectOver(pools.reading, schemaOf(url))
  const writing = await connectOver(pools.writing, schemaOf(url))
  const Generated = PrismaClient as unknown as new (options: ClientOptions) => Client
  const clientOver = (adapter: SqlDriverAdapter): Client => createClient(Generated, adapter, timeout)
  return {
    dialect: postgresql,
    reads: readsOver(reading, pools.reading),
    readers,
    transact: createTransact(writing, clientOver, timeout),
    writers,
    reader: clientOver(reading),
    writer: clientOver(writing),
    acceptsWrites: async () => await acceptsWrites(reading),
    onStarved: (listener) => { listeners.push(listener) },
    close: async () => { await Promise.all([reading.dispose(), writing.dispose()]) }
  }
}

/** Reads without the conversions of Prisma's adapter, which take a sixth of the service's time for a lone read. */
function readsOver (adapter: SqlQueryable, pool: ConnectionPool): Connection {
  return {
    provider: adapter.provider,
    adapterName: adapter.adapterName,
    queryRaw: async (query) => await adapter.queryRaw(query),
    executeRaw: async (query) => await adapter.executeRaw(query),
    runTogether: async (statements) => await pool.runTogether(statements),
    runEach: (statements) => pool.runEach(statements)
  }
}

/** A new transaction is read-only on a standby, and where `default_transaction_read_only` says so. */
async function acceptsWrites (connection: SqlQueryable): Promise<boolean> {
  const { rows: [row] } = await connection.queryRaw({
    sql: "SELECT current_setting('transaction_read_only')", args: [], argTypes: []
  })
  return row?.[0] === 'off'
}

/** @param schema the schema that Prisma's statements name: `public` by default, whatever the connection's is */
async function connectOver (pool: ConnectionPool, schema: string): Promise<SqlDriverAdapter & TransactionalAdapter> {
  const factory = new PrismaPg(pool, { schema, disposeExternalPool: true })
  const adapter = await factory.connect()
  const start = adapter.startTransaction.bind(adapter)
  return Object.assign(adapter, {
    startTransaction: async () => {
      const stock = await start()
      // The connections of a `ConnectionPool` are of this class.
      const { client } = stock as unknown as { client: TransactionClient }
      const connection: Connection = {
        provider: stock.provider,
        adapterName: stock.adapterName,
        queryRaw: async (query) => await stock.queryRaw(query),
        executeRaw: async (query) => await stock.executeRaw(query),
        runTogether: async (statements) => await client.runTogether(statements)
      }
      return new OpenTransaction(connection, {
        // The stock adapter's `commit` and `rollback` only give the connection back.
        commit: async (statements) => {
          const rows = await client.commitAfter(statements)
          await stock.commit()
          return rows
        },
        rollback: async (isUsable) => {
          if (isUsable) await client.query('ROLLBACK').catch(() => {})
          else client.end().catch(() => {})
          await stock.rollback()
        }
      })
    }
  })
}
