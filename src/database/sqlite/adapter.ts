import type { SqlDriverAdapter, SqlDriverAdapterFactory, Transaction } from '@prisma/driver-adapter-utils'
import type { SqliteConnection } from './connection.ts'
import { LOCK_TIMEOUT_MS, openConnection } from './open-connection.ts'
import { Transactions } from './transactions.ts'

const NAMES = { provider: 'sqlite', adapterName: 'petstore-sqlite' } as const

/** Connects Prisma Client to a SQLite file. */
export function sqliteAdapterFactory (url: string, lockTimeout = LOCK_TIMEOUT_MS): SqlDriverAdapterFactory {
  return { ...NAMES, connect: async () => adapterOver(await openConnection(url, lockTimeout), lockTimeout) }
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
