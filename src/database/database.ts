import type { PrismaClient } from '../generated/sqlite/client.ts'
import type { Dialect } from './dialect.ts'
import type { Run } from './statements.ts'
import type { Transact } from './transact.ts'

export interface Database {
  dialect: Dialect
  /** Runs statements that read. They see committed data only. */
  read: Run
  /**
   * Runs a statement at once, in this thread, and returns its first row. Exists where that costs less than to share a
   * statement: SQLite looks a row up in 2 to 6 µs.
   */
  readRow?: (sql: string, values: readonly unknown[]) => object | undefined
  /** Runs transactions that only read: all statements of one see the same moment. They have no time limit. */
  view: Transact
  /** Runs transactions, on connections that no read uses. */
  transact: Transact
  /** Maximum number of transactions in flight. */
  writers: number
  /**
   * Prisma Client, for rare reads: those of the command line and the demo store. All writes are group commits. The two
   * generated clients have the same models; SQLite's type stands for both. Their transactions have the time of a write.
   */
  readonly prisma: PrismaClient
  /**
   * Calls the listener when a server refuses another connection, with the number of those that are open for the same
   * purpose. Exists where there is a server.
   */
  onRefused?: (listener: (open: number) => void) => void
  close: () => Promise<void>
}

export interface DatabaseOptions {
  url: string
  /** Connections to PostgreSQL. */
  pool: number
  /** How long a statement may wait for the database, in ms. */
  timeout: number
  /** Called when transactions on SQLite begin to run in a thread of their own, because the disk is slow. */
  onSlowDisk?: () => void
}

/** Waits for locks as a write would, and changes nothing. @throws when the database accepts no writes */
export async function checkWritable ({ transact }: Database): Promise<void> {
  await transact(async ({ run }) => await run([{ sql: 'UPDATE accounts SET name = name WHERE false', values: [] }]))
}
