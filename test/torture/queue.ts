import { openDatabase } from '../../src/database/open-database.ts'

/** Reads and changes the deliveries of one account in the database, as an operator can. */
export interface Queue {
  /** Counts the messages that are not `delivered`. */
  undelivered: () => Promise<number>
  /** Counts the deliveries that wait for another attempt and have no lease. */
  tried: () => Promise<number>
  /** Makes all deliveries without a lease due. */
  endPauses: () => Promise<void>
  /** Makes all deliveries due, also those with a lease of a killed worker. */
  endLeases: () => Promise<void>
  close: () => Promise<void>
}

export async function openQueue (url: string, account: number): Promise<Queue> {
  const { prisma, dialect, close } = await openDatabase({ url, pool: 2, timeout: 20_000 })

  async function makeDue (which: string): Promise<void> {
    const past = dialect.toTime(`'${new Date(Date.now() - 1_000).toISOString()}'`)
    // On SQLite, a transaction waits for the write lock.
    await prisma.$transaction(async (prisma) => {
      await prisma.$executeRawUnsafe(`UPDATE deliveries SET next_try_at = ${past} WHERE state = 'waiting' AND ${which}`)
    })
  }

  const where = { accountId: BigInt(account) }
  return {
    undelivered: async () => await prisma.message.count({ where: { ...where, status: { not: 'delivered' } } }),
    tried: async () => await prisma.delivery.count({
      where: { ...where, state: 'waiting', attempts: { gt: 0 }, leasedBy: null }
    }),
    endPauses: async () => { await makeDue('leased_by IS NULL') },
    endLeases: async () => { await makeDue('TRUE') },
    close
  }
}
