import { timeText } from '../database/account-clocks.ts'
import type { Command } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'

/**
 * Returns an SQL condition: whether a worker leases a delivery. After an ANALYZE, SQLite would otherwise read all
 * leased deliveries for each id.
 */
export function isLeasedBy (worker: string): string {
  return `coalesce(deliveries.leased_by, '') = ${worker}`
}

/**
 * Moves the ends of the leases of an account's deliveries when its clock is moved ahead. A lease is a time of the
 * account's clock, and it must not expire while its worker still sends.
 */
export async function shiftLeases (
  { dialect, query, execute }: Transaction, account: number, seconds: number
): Promise<void> {
  const ofAccount = `IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})`
  // The row of a webhook is locked for its deliveries, as in every other transaction.
  const webhooks = await query<{ id: number }>(
    `SELECT w.id FROM webhooks w WHERE w.account_id ${ofAccount} ORDER BY w.id ${dialect.forUpdate}`, [{ account }])
  if (webhooks.length === 0) return
  const leased = await query<{ id: number, until: string }>(`
    SELECT d.id, ${dialect.time('d.next_try_at')} AS until
    FROM ${dialect.jsonRows('i', { id: 'bigint' })} JOIN deliveries d ON d.webhook_id = i.id AND d.leased_by IS NOT NULL`,
  webhooks.map(({ id }) => ({ id })))
  await execute(`
    UPDATE deliveries SET next_try_at = ${dialect.toTime('i.until')}
    FROM ${dialect.jsonRows('i', { id: 'bigint', until: 'text' })} WHERE deliveries.id = i.id`,
  leased.map(({ id, until }) => ({ id, until: timeText(Date.parse(until) + seconds * 1000) })))
}

/** Extends the leases of deliveries that a worker sends later than it planned. */
export const extendLease: Command<{ account: number, id: number, worker: string, until: number }, undefined> = {
  name: 'extendLease',
  async run ({ dialect, execute, clockOffset }, inputs) {
    await execute(`
      UPDATE deliveries SET next_try_at = ${dialect.toTime('i.until')}
      FROM ${dialect.jsonRows('i', { id: 'bigint', worker: 'text', until: 'text' })}
      WHERE deliveries.id = i.id AND ${isLeasedBy('i.worker')}`,
    inputs.map(({ account, id, worker, until }) =>
      ({ id, worker, until: timeText(until + clockOffset(account)) })))
    return inputs.map(() => ({ record: undefined }))
  }
}
