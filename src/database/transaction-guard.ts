import { DriverAdapterError, type SqlQuery, type Transaction } from '@prisma/driver-adapter-utils'

const ENDS = /^(COMMIT|ROLLBACK)$/i

/**
 * Lets a transaction take no statement after its end. Prisma's client ends one that lasts too long, and what it was
 * about goes on: on a connection that is in no transaction any more, where each statement is committed by itself.
 */
export function rejectStatementsAfterEnd (transaction: Transaction): Transaction {
  let over = false

  function guarded<Result> (run: (query: SqlQuery) => Promise<Result>): (query: SqlQuery) => Promise<Result> {
    return async (query) => {
      const ends = ENDS.test(query.sql)
      if (over && !ends) throw new DriverAdapterError({ kind: 'TransactionAlreadyClosed', cause: 'It has ended already' })
      over ||= ends
      return await run(query)
    }
  }

  transaction.queryRaw = guarded(transaction.queryRaw.bind(transaction))
  transaction.executeRaw = guarded(transaction.executeRaw.bind(transaction))
  return transaction
}
