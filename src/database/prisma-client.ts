import type { SqlDriverAdapter } from '@prisma/driver-adapter-utils'
import type { Prisma, PrismaClient } from '../generated/sqlite/client.ts'

/** The two generated clients have the same models; SQLite's type stands for both. */
export type Client = PrismaClient
export type TransactionClient = Prisma.TransactionClient

export type ClientOptions = ConstructorParameters<typeof PrismaClient>[0]

/** Creates a Prisma Client over an adapter, which it does not close. */
export function createClient (
  PrismaClient: new (options: ClientOptions) => Client, adapter: SqlDriverAdapter, timeout: number
): Client {
  const { provider, adapterName } = adapter
  const connected = Object.create(adapter, { dispose: { value: async () => {} } }) as SqlDriverAdapter
  return new PrismaClient({
    adapter: { provider, adapterName, connect: async () => connected },
    // The other formats take a stack trace with every call, for the message of an error that may come.
    errorFormat: 'minimal',
    // Prisma's own time-outs (2 s for a connection, 5 s for a transaction) would cut off a busy commit.
    transactionOptions: { maxWait: timeout, timeout }
  })
}
