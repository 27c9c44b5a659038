import type { SqlDriverAdapter } from '@prisma/driver-adapter-utils'
import { PrismaClient } from '../../generated/sqlite/client.ts'
import { type Database, type DatabaseOptions } from '../database.ts'
import { createClient, type Client } from '../prisma-client.ts'
import { createTransact } from '../transact.ts'
import { SqliteAdapterFactory } from './adapter.ts'
import { sqlite } from './dialect.ts'
import { DiskSpeed } from './disk-speed.ts'
import { WriterThread } from './writer-thread.ts'

/**
 * Opens a connection for reads and one for the single writer. While COMMITs wait long for the disk, transactions run in
 * a thread with a third connection.
 *
 * @param disk measures the disk
 */
export async function openSqlite (
  { url, timeout, onSlowDisk = () => {} }: DatabaseOptions, disk: Pick<DiskSpeed, 'record' | 'isSlow'> = new DiskSpeed()
): Promise<Database> {
  const factory = new SqliteAdapterFactory(url, timeout)
  const reading = await factory.connect()
  const writing = await factory.connectWriter()
  writing.onCommit = (waited) => { disk.record(waited) }
  const thread = new WriterThread({ url, lockTimeout: timeout }, { onReady: onSlowDisk })
  const clientOver = (adapter: SqlDriverAdapter): Client => createClient(PrismaClient, adapter, timeout)
  const transactHere = createTransact(writing, clientOver, timeout)
  const transactInThread = createTransact(thread, clientOver, timeout)
  const isInThread = (): boolean => disk.isSlow() && thread.start()
  return {
    dialect: sqlite,
    reads: reading,
    readRow: reading.readRow,
    readers: 1,
    transact: async (work) => await (isInThread() ? transactInThread : transactHere)(work),
    writers: 1,
    reader: clientOver(reading),
    writer: clientOver(writing),
    acceptsWrites: async () => true,
    close: async () => {
      await thread.dispose()
      await Promise.all([reading.dispose(), writing.dispose()])
    }
  }
}
