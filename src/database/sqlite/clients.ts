import { PrismaClient } from '../../generated/sqlite/client.ts'
import { createClient, type Client, type Database, type DatabaseOptions } from '../prisma-client.ts'
import { SqliteAdapterFactory } from './adapter.ts'
import { sqlite } from './dialect.ts'

/** Opens a client for reads and one for the single writer, each with a connection of its own. */
export function openSqlite ({ url, timeout }: DatabaseOptions): Database {
  const open = (): Client => createClient(PrismaClient, new SqliteAdapterFactory(url, timeout), timeout)
  const reader = open()
  const writer = open()
  const close = async (): Promise<void> => { await Promise.all([reader.$disconnect(), writer.$disconnect()]) }
  return { dialect: sqlite, reader, readers: 1, writer, writers: 1, acceptsWrites: async () => true, close }
}
