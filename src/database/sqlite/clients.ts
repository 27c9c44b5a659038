import type { SqlDriverAdapter } from '@prisma/driver-adapter-utils'
import { PrismaClient } from '../../generated/sqlite/client.ts'
import { type Database, type DatabaseOptions } from '../database.ts'
import { createClient, type Client } from '../prisma-client.ts'
import { createTransact } from '../transact.ts'
import { SqliteAdapterFactory } from './adapter.ts'
import { sqlite } from './dialect.ts'

/** Opens a connection for reads and one for the single writer. */
export async function openSqlite ({ url, timeout }: DatabaseOptions): Promise<Database> {
  const factory = new SqliteAdapterFactory(url, timeout)
  const reading = await factory.connect()
  const writing = await factory.connect()
  const clientOver = (adapter: SqlDriverAdapter): Client => createClient(PrismaClient, adapter, timeout)
  return {
    dialect: sqlite,
    reads: reading,
    readRow: reading.readRow,
    readers: 1,
    transact: createTransact(writing, clientOver, timeout),
    writers: 1,
    reader: clientOver(reading),
    writer: clientOver(writing),
    acceptsWrites: async () => true,
    close: async () => { await Promise.all([reading.dispose(), writing.dispose()]) }
  }
}
