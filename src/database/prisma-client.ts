import type { SqlDriverAdapterFactory } from '@prisma/driver-adapter-utils'
import type { PrismaClient } from '../generated/sqlite/client.ts'

/** The two generated clients have the same models; SQLite's type stands for both. */
export type Client = PrismaClient

export type ClientOptions = ConstructorParameters<typeof PrismaClient>[0]

/** Creates a Prisma Client over an adapter. */
export function createClient (
  PrismaClient: new (options: ClientOptions) => Client, adapter: SqlDriverAdapterFactory, timeout: number
): Client {
  return new PrismaClient({
    adapter,
    // The other formats take a stack trace with every call, for the message of an error that may come.
    errorFormat: 'minimal',
    // Prisma's own time-outs (2 s for a connection, 5 s for a transaction) would cut off a busy commit.
    transactionOptions: { maxWait: timeout, timeout }
  })
}
