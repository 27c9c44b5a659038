import { PrismaPg } from '@prisma/adapter-pg'
import type { SqlDriverAdapterFactory, SqlQuery } from '@prisma/driver-adapter-utils'
import pg from 'pg'
import { PrismaClient } from '../../generated/postgresql/client.ts'
import { createClient, type Client, type ClientOptions, type Database, type DatabaseOptions } from '../prisma-client.ts'
import { rejectStatementsAfterEnd } from '../transaction-guard.ts'
import { postgresql } from './dialect.ts'

/** Commits in flight at once: one that waits for another process's locks does not block the rest. */
const MAX_WRITERS = 3

/** A lock of another process is given up after this time, so that the group can be tried again. */
const LOCK_TIMEOUT_MS = 3_000

/**
 * Every statement looks rows up by their keys or walks an index, whatever the planner estimates of the size of a
 * table; and since its one parameter is always a JSON text, planning it anew teaches nothing.
 */
export const PLANNER = [
  'enable_seqscan=off', 'enable_hashjoin=off', 'enable_mergejoin=off', 'enable_bitmapscan=off',
  'enable_incremental_sort=off', 'jit=off', 'plan_cache_mode=force_generic_plan'
]

/** Opens one client over a pool of connections, for reads and writes. */
export function openPostgresql ({ url, pool, timeout }: DatabaseOptions): Database {
  const connections = new pg.Pool({
    connectionString: url,
    max: pool,
    connectionTimeoutMillis: timeout,
    query_timeout: timeout,
    statement_timeout: timeout,
    // Later than the statement's own time-out it would never apply.
    lock_timeout: Math.min(Math.round(timeout / 2), LOCK_TIMEOUT_MS),
    keepAlive: true,
    application_name: 'petstore',
    options: PLANNER.map((setting) => `-c ${setting}`).join(' ')
  })
  // Prisma returns a connection also when its ROLLBACK was never sent, because the server did not answer in time.
  // The next transaction on it would commit what is left of that one.
  connections.on('release', (_error, connection) => {
    if (connection.getTransactionStatus() !== 'I') connection.end().catch(() => {})
  })
  const factory = new PrismaPg(connections, { statementNameGenerator, disposeExternalPool: true })
  const Generated = PrismaClient as unknown as new (options: ClientOptions) => Client
  const client = createClient(Generated, withGuardedTransactions(factory), timeout)
  return {
    dialect: postgresql,
    reader: client,
    readers: pool,
    writer: client,
    writers: MAX_WRITERS,
    acceptsWrites: async () => await acceptsWrites(client),
    close: async () => { await client.$disconnect() }
  }
}

/** A new transaction is read-only on a standby, and where `default_transaction_read_only` says so. */
async function acceptsWrites (client: Client): Promise<boolean> {
  const [row] = await client.$queryRaw<Array<{ setting: string }>>`
    SELECT current_setting('transaction_read_only') AS setting`
  return row?.setting === 'off'
}

function withGuardedTransactions (factory: SqlDriverAdapterFactory): SqlDriverAdapterFactory {
  return {
    provider: factory.provider,
    adapterName: factory.adapterName,
    async connect () {
      const adapter = await factory.connect()
      const start = adapter.startTransaction.bind(adapter)
      adapter.startTransaction = async (level) => rejectStatementsAfterEnd(await start(level))
      return adapter
    }
  }
}

const statementNames = new Map<string, string>()

/** Names cost memory in every connection, so later statements (Prisma's `IN` lists of every length) get none. */
const MAX_STATEMENT_NAMES = 500

/** The service's statements are few and fixed: PostgreSQL parses and plans each once per connection. */
function statementNameGenerator ({ sql }: SqlQuery): string {
  let name = statementNames.get(sql)
  if (name === undefined && statementNames.size < MAX_STATEMENT_NAMES) {
    name = `s${statementNames.size}`
    statementNames.set(sql, name)
  }
  return name ?? ''
}
