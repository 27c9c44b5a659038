import { PrismaClient } from '../../generated/sqlite/client.ts'
import { type Database, type DatabaseOptions } from '../database.ts'
import { BEGIN } from '../statements.ts'
import { createTransact } from '../transact.ts'
import { Turns } from '../turns.ts'
import { sqliteAdapterFactory } from './adapter.ts'
import { sqlite } from './dialect.ts'
import { DiskSpeed } from './disk-speed.ts'
import { openConnection, openWriter } from './open-connection.ts'
import { BEGIN_IMMEDIATE, reserve, statementsOn } from './transactions.ts'
import { WriterThread } from './writer-thread.ts'

/**
 * Opens a connection for reads, one for views and one for the single writer. While COMMITs wait long for the disk,
 * transactions run in a thread with a connection of its own.
 *
 * @param disk measures the disk
 */
export async function openSqlite (
  { url, timeout, onSlowDisk = () => {} }: DatabaseOptions,
  disk: Pick<DiskSpeed, 'measure' | 'isSlow'> = new DiskSpeed()
): Promise<Database> {
  const reading = await openConnection(url, timeout)
  const writing = await openWriter(url, timeout)
  /** A transaction of `reading` would hide later commits from all reads. */
  const viewing = await openConnection(url, timeout)
  /** A transaction that waits for a lock fails before its time-out, with the error that tells why. */
  const lockTimeout = 0.9 * timeout
  const here = statementsOn(writing, lockTimeout, (commit) => { disk.measure(commit) })
  const thread = new WriterThread({ url, lockTimeout }, onSlowDisk)
  const views = statementsOn(viewing, timeout)
  const [writers, viewers] = [new Turns(), new Turns()]
  let prisma: PrismaClient | undefined
  return {
    dialect: sqlite,
    read: async (statements) => statements.map(({ sql, values }) => reading.all(sql, values)),
    readRow: (sql, values) => reading.all(sql, values)[0],
    view: createTransact(async () => await reserve(viewers, () => views), BEGIN),
    transact: createTransact(
      async () => await reserve(writers, () => (disk.isSlow() ? thread.runner() : undefined) ?? here),
      BEGIN_IMMEDIATE, timeout),
    writers: 1,
    get prisma () {
      prisma ??= new PrismaClient({
        adapter: sqliteAdapterFactory(url, timeout), transactionOptions: { maxWait: timeout, timeout }
      })
      return prisma
    },
    close: async () => {
      await Promise.all([thread.dispose(), prisma?.$disconnect()])
      for (const connection of [reading, writing, viewing]) connection.close()
    }
  }
}
