import { openDatabase } from '../../src/database/open-database.ts'

/** The deliveries of one account, as their rows say; what an operator could do to them by hand. */
export interface Queue {
  /** Messages that are not `delivered`. */
  undelivered: () => Promise<number>
  /** Deliveries that wait for another attempt and that nobody has. */
  tried: () => Promise<number>
  /** What waits for its next try is due. */
  endPauses: () => Promise<void>
  /** Everything is due, also what a worker had taken that is dead. */
  endLeases: () => Promise<void>
  close: () => Promise<void>
}

export async function openQueue (url: string, account: number): Promise<Queue> {
  const { reader, writer, dialect, close } = await openDatabase({ url, pool: 2, timeout: 20_000 })

  async function makeDue (which: string): Promise<void> {
    const past = dialect.toTime(`'${new Date(Date.now() - 1_000).toISOString()}'`)
    // In a transaction, which waits for its turn on SQLite.
    await writer.$transaction(async (prisma) => {
      await prisma.$executeRawUnsafe(`UPDATE deliveries SET next_try_at = ${past} WHERE state = 'waiting' AND ${which}`)
    })
  }

  const where = { accountId: BigInt(account) }
  return {
    undelivered: async () => await reader.message.count({ where: { ...where, status: { not: 'delivered' } } }),
    tried: async () => await reader.delivery.count({ where: { ...where, state: 'waiting', attempts: { gt: 0 }, leasedBy: null } }),
    endPauses: async () => { await makeDue('leased_by IS NULL') },
    endLeases: async () => { await makeDue('TRUE') },
    close
  }
}
