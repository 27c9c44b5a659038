import { PrismaClient } from '../../generated/sqlite/client.ts'
import { type Database, type DatabaseOptions } from '../database.ts'
import { createClient } from '../prisma-client.ts'
import { createTransact } from '../transact.ts'
import { sqliteAdapterFactory } from './adapter.ts'
import type { SqliteConnection } from './connection.ts'
import { sqlite } from './dialect.ts'
import { DiskSpeed } from './disk-speed.ts'
import { openConnection, openWriter } from './open-connection.ts'
import { Transactions } from './transactions.ts'
import { WriterThread } from './writer-thread.ts'

/**
 * Opens a connection for reads and one for the single writer. While COMMITs wait long for the disk, transactions run in
 * a thread with a third connection.
 *
 * @param disk measures the disk
 */
export async function openSqlite (
  { url, timeout, onSlowDisk = () => {} }: DatabaseOptions,
  disk: Pick<DiskSpeed, 'measure' | 'isSlow'> = new DiskSpeed()
): Promise<Database> {
  const reading = await openConnection(url, timeout)
  const writing = await openWriter(url, timeout)
  const here = new Transactions(writing, timeout, (commit) => { disk.measure(commit) })
  const thread = new WriterThread({ url, lockTimeout: timeout }, { onReady: onSlowDisk })
  /** Opened for the first view: a transaction of `reading` would hide later commits from all reads. */
  let viewing: SqliteConnection | undefined
  const isInThread = (): boolean => disk.isSlow() && thread.start()
  let prisma: PrismaClient | undefined
  return {
    dialect: sqlite,
    read: async (statements) => statements.map(({ sql, values }) => reading.all(sql, values)),
    readRow: (sql, values) => reading.get(sql, values),
    openView: async () => {
      const view = viewing ??= await openConnection(url, timeout)
      view.all('BEGIN', [])
      return {
        run: async (statements) => statements.map(({ sql, values }) => view.all(sql, values)),
        close: async () => { view.all('ROLLBACK', []) }
      }
    },
    transact: createTransact(async () => await (isInThread() ? thread : here).begin(), timeout),
    writers: 1,
    get prisma () {
      prisma ??= createClient(PrismaClient, sqliteAdapterFactory(url, timeout), timeout)
      return prisma
    },
    acceptsWrites: async () => true,
    close: async () => {
      await Promise.all([thread.dispose(), prisma?.$disconnect()])
      for (const connection of [reading, writing, viewing]) connection?.close()
    }
  }
}
