import type { Transaction } from '../database/group-commit/transaction.ts'
import { STORED_TABLES } from './stored-rows.ts'

/** Maximum number of rows that one transaction copies or replaces, so that no other account waits for it. */
export const MAX_STORE_ROWS = 10_000

/** Tells whether a store has more rows than one transaction may replace. Counts no further than the limit. */
export async function exceedsLimit ({ dialect, query }: Transaction, account: number): Promise<boolean> {
  const rows = STORED_TABLES.map(({ name }) => `SELECT 1 AS one FROM s JOIN ${name} r ON r.account_id = s.account`)
  const [counted] = await query<{ count: number }>(`
    WITH s AS (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
    SELECT count(*) AS count FROM (
      SELECT u.one FROM (${rows.join(' UNION ALL ')}) AS u LIMIT ${MAX_STORE_ROWS + 1}) AS x`, [{ account }])
  return counted!.count > MAX_STORE_ROWS
}

/** Drops the deliveries of messages that are gone, and counts those that the other messages still wait for. */
export async function dropLostDeliveries ({ dialect, execute }: Transaction, account: number): Promise<void> {
  const ofAccount = `IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})`
  await execute(`
    DELETE FROM deliveries WHERE account_id ${ofAccount} AND state = 'waiting' AND message_position IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.position = deliveries.message_position)`, [{ account }])
  await execute(`
    UPDATE messages SET waiting = w.count FROM (
      SELECT d.message_position AS position, count(*) AS count FROM deliveries d
      WHERE d.account_id ${ofAccount} AND d.state = 'waiting' AND d.message_position IS NOT NULL
      GROUP BY d.message_position) AS w
    WHERE messages.position = w.position`, [{ account }])
}
