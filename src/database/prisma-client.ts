import type { SqlDriverAdapterFactory } from '@prisma/driver-adapter-utils'
import type { Prisma, PrismaClient } from '../generated/sqlite/client.ts'
import type { Dialect } from './dialect.ts'

/** The two generated clients have the same models; SQLite's type stands for both. */
export type Client = PrismaClient
export type TransactionClient = Prisma.TransactionClient

export interface Database {
  dialect: Dialect
  /** For reads: sees committed data only. */
  reader: Client
  /** How many reads may be in flight at once. */
  readers: number
  /** For the committer alone. On SQLite a connection of its own, on PostgreSQL the reader's pool. */
  writer: Client
  /** How many commits may be in flight at once. */
  writers: number
  /** Returns false while a server accepts reads only, as after a failover. */
  acceptsWrites: () => Promise<boolean>
  close: () => Promise<void>
}

export interface DatabaseOptions {
  url: string
  /** Connections to PostgreSQL. */
  pool: number
  /** How long a statement may wait for the database, in ms. */
  timeout: number
}

export type ClientOptions = ConstructorParameters<typeof PrismaClient>[0]

/** Creates a Prisma Client over a driver adapter. */
export function createClient (
  PrismaClient: new (options: ClientOptions) => Client, adapter: SqlDriverAdapterFactory, timeout: number
): Client {
  // Prisma's own time-outs (2 s for a connection, 5 s for a transaction) would cut off a busy commit.
  // The other error formats take a stack trace with every call, for the message of an error that may come.
  return new PrismaClient({ adapter, errorFormat: 'minimal', transactionOptions: { maxWait: timeout, timeout } })
}

/** Waits for locks as a write would, and changes nothing. @throws when the database accepts no writes */
export async function checkWritable ({ writer }: Database): Promise<void> {
  await writer.$transaction(async (prisma) => { await prisma.$executeRaw`UPDATE accounts SET name = name WHERE false` })
}

interface DataModel { models: Record<string, { dbName: string | null, fields: Array<{ name: string }> }> }

/** Returns the names of the tables whose models have an `accountId`. */
export function tablesOfAccounts (client: Client): string[] {
  const { models } = (client as unknown as { _runtimeDataModel: DataModel })._runtimeDataModel
  return Object.entries(models)
    .filter(([, { fields }]) => fields.some(({ name }) => name === 'accountId'))
    .map(([name, { dbName }]) => dbName ?? name)
}
