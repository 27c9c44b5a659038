import type { SqlDriverAdapter, SqlMigrationAwareDriverAdapterFactory, Transaction } from '@prisma/driver-adapter-utils'
import { SqliteConnection } from './connection.ts'
import { LOCK_TIMEOUT_MS, openConnection } from './open-connection.ts'
import { Transactions } from './transactions.ts'

const NAMES = { provider: 'sqlite', adapterName: 'petstore-sqlite' } as const

/** Connects Prisma Client and Prisma's schema engine to a SQLite file, each on a connection of its own. */
export function sqliteAdapterFactory (
  url: string, lockTimeout = LOCK_TIMEOUT_MS
): SqlMigrationAwareDriverAdapterFactory {
  return {
    ...NAMES,
    connect: async () => adapterOver(await openConnection(url, lockTimeout), lockTimeout),
    connectToShadowDb: async () => adapterOver(new SqliteConnection(':memory:'), lockTimeout)
  }
}

function adapterOver (connection: SqliteConnection, lockTimeout: number): SqlDriverAdapter {
  const transactions = new Transactions(connection, lockTimeout)
  return {
    ...NAMES,
    queryRaw: async (query) => await transactions.runBetween(() => connection.query(query)),
    executeRaw: async (query) => await transactions.runBetween(() => connection.execute(query)),
    executeScript: async (script) => { connection.runScript(script) },
    startTransaction: async (): Promise<Transaction> => {
      const { commit, rollback } = await transactions.begin()
      return {
        ...NAMES,
        // Prisma Client sends no COMMIT or ROLLBACK of its own. It calls `commit` or `rollback`.
        options: { usePhantomQuery: true },
        queryRaw: async (query) => connection.query(query),
        executeRaw: async (query) => connection.execute(query),
        commit: async () => {
          try {
            await commit([])
          } catch (error) {
            await rollback(true)
            throw error
          }
        },
        rollback: async () => { await rollback(true) }
      }
    },
    dispose: async () => { connection.close() }
  }
}
