import { DriverAdapterError, type SqlQuery, type Transaction } from '@prisma/driver-adapter-utils'

const ENDS = /^(COMMIT|ROLLBACK)$/i

type Run<Result> = (query: SqlQuery) => Promise<Result>

/**
 * Makes a transaction reject statements after its end. Prisma's client ends a transaction that lasts too long, but its
 * callback continues. The connection is then outside any transaction, and would commit each statement separately.
 */
export function rejectStatementsAfterEnd (transaction: Transaction): Transaction {
  let hasEnded = false

  function guarded<Result> (run: Run<Result>): Run<Result> {
    return async (query) => {
      const ends = ENDS.test(query.sql)
      if (hasEnded && !ends) {
        throw new DriverAdapterError({ kind: 'TransactionAlreadyClosed', cause: 'The transaction has ended' })
      }
      hasEnded ||= ends
      return await run(query)
    }
  }

  transaction.queryRaw = guarded(transaction.queryRaw.bind(transaction))
  transaction.executeRaw = guarded(transaction.executeRaw.bind(transaction))
  return transaction
}
