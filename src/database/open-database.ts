import type { SqlDriverAdapterFactory, SqlQuery } from '@prisma/driver-adapter-utils'
import type { Prisma, PrismaClient } from '../generated/sqlite/client.ts'
import { rejectStatementsAfterEnd } from './transaction-guard.ts'
import { databaseOf, dialects, type Dialect } from './dialect.ts'

/** The two generated clients have the same models; SQLite's type stands for both. */
export type Client = PrismaClient
export type TransactionClient = Prisma.TransactionClient

export interface Database {
  dialect: Dialect
  /** For reads: sees committed data only. */
  reader: Client
  /** For the committer alone. On SQLite a connection of its own, on PostgreSQL the reader's pool. */
  writer: Client
  /** How many commits may be under way at once. */
  writers: number
  close: () => Promise<void>
}

export interface DatabaseOptions {
  url: string
  /** Connections to PostgreSQL. */
  pool: number
  /** How long a statement may wait for the database, in ms. */
  timeout: number
}

/** Commits under way at once on PostgreSQL: one that waits for another process's locks does not hold up the rest. */
const POSTGRESQL_WRITERS = 3

/** A lock of another process is given up after this long, in ms, so that its group can be tried again. */
const LOCK_TIMEOUT_MS = 3_000

/**
 * Every statement looks rows up by their keys or walks an index, whatever the planner believes of the size
 * of a table; and since its one parameter is always a JSON text, planning it anew teaches nothing.
 */
const PLANNER = ['enable_seqscan=off', 'enable_hashjoin=off', 'enable_mergejoin=off', 'jit=off', 'plan_cache_mode=force_generic_plan']

/** Opens the clients; connections are made when they are first needed. Loads the code of the one database only. */
export async function openDatabase (options: DatabaseOptions): Promise<Database> {
  return databaseOf(options.url) === 'sqlite' ? await openSqlite(options) : await openPostgresql(options)
}

async function openSqlite ({ url, timeout }: DatabaseOptions): Promise<Database> {
  const { PrismaClient } = await import('../generated/sqlite/client.ts')
  const { SqliteAdapterFactory } = await import('./sqlite/adapter.ts')
  const open = (): Client => client(PrismaClient, new SqliteAdapterFactory(url, timeout), timeout)
  const reader = open()
  const writer = open()
  const close = async (): Promise<void> => { await Promise.all([reader.$disconnect(), writer.$disconnect()]) }
  return { dialect: dialects.sqlite, reader, writer, writers: 1, close }
}

async function openPostgresql ({ url, pool, timeout }: DatabaseOptions): Promise<Database> {
  const { PrismaClient } = await import('../generated/postgresql/client.ts')
  const { PrismaPg } = await import('@prisma/adapter-pg')
  const { default: pg } = await import('pg')
  const connections = new pg.Pool({
    connectionString: url,
    max: pool,
    connectionTimeoutMillis: timeout,
    query_timeout: timeout,
    statement_timeout: timeout,
    // Later than the statement's own time-out it would never be.
    lock_timeout: Math.min(Math.round(timeout / 2), LOCK_TIMEOUT_MS),
    keepAlive: true,
    application_name: 'petstore',
    options: PLANNER.map((setting) => `-c ${setting}`).join(' ')
  })
  // Prisma hands a connection back also when its ROLLBACK was never sent, because the server did not answer in time.
  // The next transaction on it would commit what is left of that one.
  connections.on('release', (_error, connection) => { if (connection.getTransactionStatus() !== 'I') connection.end().catch(() => {}) })
  const adapter = withClosingTransactions(new PrismaPg(connections, { statementNameGenerator, disposeExternalPool: true }))
  const both = client(PrismaClient as unknown as new (options: ClientOptions) => Client, adapter, timeout)
  return { dialect: dialects.postgresql, reader: both, writer: both, writers: POSTGRESQL_WRITERS, close: async () => { await both.$disconnect() } }
}

function withClosingTransactions (factory: SqlDriverAdapterFactory): SqlDriverAdapterFactory {
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

/** Changes nothing, as a write would change something: waits for the locks of others. @throws when the database may only be read */
export async function canWrite ({ writer }: Database): Promise<void> {
  await writer.$transaction(async (prisma) => { await prisma.$executeRaw`UPDATE accounts SET name = name WHERE false` })
}

type ClientOptions = ConstructorParameters<typeof PrismaClient>[0]

function client (PrismaClient: new (options: ClientOptions) => Client, adapter: SqlDriverAdapterFactory, timeout: number): Client {
  // Prisma's own clocks (2 s for a connection, 5 s for a transaction) would cut off a busy commit.
  // The other formats take a stack trace with every call, for the message of an error that may come.
  return new PrismaClient({ adapter, errorFormat: 'minimal', transactionOptions: { maxWait: timeout, timeout } })
}

const statementNames = new Map<string, string>()

/** Names cost memory in every connection, so what comes later (Prisma's `IN` lists of every length) gets none. */
const STATEMENT_NAMES = 500

/** Our statements are few and fixed: PostgreSQL parses and plans each once per connection. */
function statementNameGenerator ({ sql }: SqlQuery): string {
  let name = statementNames.get(sql)
  if (name === undefined && statementNames.size < STATEMENT_NAMES) {
    name = `s${statementNames.size}`
    statementNames.set(sql, name)
  }
  return name ?? ''
}
