import type { SqlDriverAdapter, Transaction } from '@prisma/driver-adapter-utils'
import { withDeadline } from './error-classification.ts'
import { transactionHasEnded, type OpenTransaction } from './open-transaction.ts'
import type { Client, TransactionClient } from './prisma-client.ts'
import type { Connection } from './statements.ts'

/** Runs its callback in a transaction. Commits when the callback resolves, and rolls back when it rejects. */
export type Transact = <Result>(work: (transaction: TransactionAccess) => Promise<Result>) => Promise<Result>

export interface TransactionAccess {
  /** Runs the service's own statements. */
  connection: Connection
  /** Returns Prisma Client within the transaction, for writes whose speed does not matter. */
  prisma: () => TransactionClient
}

/** Creates a Prisma Client over an adapter. */
export type CreateClient = (adapter: SqlDriverAdapter) => Client

/** The part of an adapter that begins transactions, which end safely. */
export interface TransactionalAdapter extends Pick<SqlDriverAdapter, 'provider' | 'adapterName' | 'getConnectionInfo'> {
  startTransaction: () => Promise<OpenTransaction>
}

/**
 * Returns a function that runs transactions on an adapter's connections.
 *
 * @param timeout maximum time of a transaction, in ms
 */
export function createTransact (
  adapter: TransactionalAdapter, createClient: CreateClient, timeout: number
): Transact {
  /** Clients that no transaction uses: each loads a query compiler, so it is kept. */
  const idle: BoundClient[] = []

  return async function transact (work) {
    const transaction = await adapter.startTransaction()
    let bound: BoundClient | undefined
    const prisma = (): TransactionClient => {
      bound ??= idle.pop() ?? new BoundClient(adapter, createClient)
      bound.transaction = transaction
      return bound.client
    }
    try {
      const result = await withDeadline(work({ connection: transaction, prisma }), timeout)
      await transaction.commit()
      if (bound !== undefined) {
        bound.transaction = undefined
        idle.push(bound)
      }
      return result
    } catch (error) {
      // The callback may still be running, and must not reach another transaction: the bound client is dropped.
      await transaction.rollback().catch(() => {})
      throw error
    }
  }
}

/** A Prisma Client whose calls run in the transaction that it is bound to. */
class BoundClient {
  readonly client: Client
  transaction: OpenTransaction | undefined

  constructor (adapter: TransactionalAdapter, createClient: CreateClient) {
    const { provider, adapterName } = adapter
    const bound: SqlDriverAdapter = {
      provider,
      adapterName,
      queryRaw: async (query) => await this.#current().queryRaw(query),
      executeRaw: async (query) => await this.#current().executeRaw(query),
      executeScript: async () => { throw new Error('a transaction runs no scripts') },
      startTransaction: async () => this.#nested(),
      getConnectionInfo: () => adapter.getConnectionInfo?.() ?? { supportsRelationJoins: false },
      dispose: async () => {}
    }
    this.client = createClient(bound)
  }

  #current (): OpenTransaction {
    if (this.transaction === undefined) throw transactionHasEnded()
    return this.transaction
  }

  /** Prisma Client wraps a call of several statements in a transaction: they are part of the one that is open. */
  #nested (): Transaction {
    const transaction = this.#current()
    return {
      provider: transaction.provider,
      adapterName: transaction.adapterName,
      options: { usePhantomQuery: true },
      queryRaw: transaction.queryRaw,
      executeRaw: transaction.executeRaw,
      commit: async () => {},
      rollback: async () => { transaction.fail(new Error('Prisma Client rolled back a call')) }
    }
  }
}
