import type { SqlDriverAdapter, SqlDriverAdapterFactory, Transaction } from '@prisma/driver-adapter-utils'
import { COMMIT, ROLLBACK, type OwnStatement } from '../statements.ts'
import { Turns } from '../turns.ts'
import type { SqliteConnection } from './connection.ts'
import { LOCK_TIMEOUT_MS, openConnection } from './open-connection.ts'
import { BEGIN_IMMEDIATE, reserve, statementsOn, untilUnlocked } from './transactions.ts'

const NAMES = { provider: 'sqlite', adapterName: 'petstore-sqlite' } as const

/** Connects Prisma Client to a SQLite file. */
export function sqliteAdapterFactory (url: string, lockTimeout = LOCK_TIMEOUT_MS): SqlDriverAdapterFactory {
  return {
    ...NAMES,
    connect: async () => adapterOver(await openConnection(url, lockTimeout, { readBigInts: true }), lockTimeout)
  }
}

function adapterOver (connection: SqliteConnection, lockTimeout: number): SqlDriverAdapter {
  const turns = new Turns()
  const statements = statementsOn(connection, lockTimeout)

  /** Runs a statement outside of transactions: within one, a ROLLBACK would undo it. */
  async function runBetween<Result> (statement: () => Result): Promise<Result> {
    const endTurn = await turns.take()
    return await untilUnlocked(lockTimeout, statement).finally(endTurn)
  }

  async function startTransaction (): Promise<Transaction> {
    const { run, release } = await reserve(turns, () => statements)
    const rollback = async (): Promise<void> => { await run([ROLLBACK]).finally(release) }
    const runOrRollBack = async (statement: OwnStatement): Promise<void> => {
      await run([statement]).catch(async (error: unknown) => {
        await rollback()
        throw error
      })
    }
    await runOrRollBack(BEGIN_IMMEDIATE)
    return {
      ...NAMES,
      // Prisma Client sends no COMMIT or ROLLBACK of its own. It calls `commit` or `rollback`.
      options: { usePhantomQuery: true },
      queryRaw: async (query) => connection.query(query),
      executeRaw: async (query) => connection.execute(query),
      commit: async () => {
        await runOrRollBack(COMMIT)
        release()
      },
      rollback
    }
  }

  return {
    ...NAMES,
    queryRaw: async (query) => await runBetween(() => connection.query(query)),
    executeRaw: async (query) => await runBetween(() => connection.execute(query)),
    executeScript: async (script) => { connection.runScript(script) },
    startTransaction,
    dispose: async () => { connection.close() }
  }
}
