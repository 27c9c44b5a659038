import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../../generated/postgresql/client.ts'
import { type Database, type DatabaseOptions } from '../database.ts'
import { BEGIN, type OwnStatement } from '../statements.ts'
import { createTransact } from '../transact.ts'
import { ConnectionPool } from './connection-pool.ts'
import { schemaOf } from './connection-url.ts'
import { postgresql } from './dialect.ts'

/** Transactions in flight at once: one that waits for another process's locks does not block the rest. */
const MAX_WRITERS = 3

/**
 * Maximum time to wait for a row or a key that another transaction has locked, in ms. All writes of a group wait, so it
 * is just long enough for transactions that commit. What waits longer does so outside the groups: the other transaction
 * may be of a process that is suspended.
 */
const LOCK_TIMEOUT_MS = 100

/** Begins a transaction that sees the moment of its first statement. */
const BEGIN_VIEW: OwnStatement = { sql: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', values: [] }

/** Opens two pools of connections, for reads and for transactions: reads that take long leave the writers theirs. */
export async function openPostgresql ({ url, pool, timeout }: DatabaseOptions): Promise<Database> {
  const writers = Math.min(MAX_WRITERS, Math.max(1, Math.floor(pool / 2)))
  const readers = Math.max(1, pool - writers)
  const reading = new ConnectionPool(url, { size: readers, timeout, lockTimeout: 0 })
  const writing = new ConnectionPool(url, { size: writers, timeout, lockTimeout: LOCK_TIMEOUT_MS })
  // Reads cannot keep the last connection from writes, nor writes from reads.
  for (const [refused, other] of [[reading, writing], [writing, reading]] as const) {
    refused.refusalListeners.push((open) => { if (open === 0) void other.yieldConnection() })
  }
  let prisma: Database['prisma'] | undefined
  return {
    dialect: postgresql,
    read: reading.run,
    view: createTransact(reading.reserve, BEGIN_VIEW),
    transact: createTransact(writing.reserve, BEGIN, timeout),
    writers,
    get prisma () {
      // Prisma's statements name the schema.
      prisma ??= new PrismaClient({
        adapter: new PrismaPg(reading, { schema: schemaOf(url) }), transactionOptions: { maxWait: timeout, timeout }
      }) as unknown as Database['prisma']
      return prisma
    },
    onRefused: (listener) => { for (const { refusalListeners } of [reading, writing]) refusalListeners.push(listener) },
    close: async () => { await Promise.all([reading.end(), writing.end()]) }
  }
}
