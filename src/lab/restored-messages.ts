import { nextVersionSql } from '../database/record.ts'
import type { NewEvent } from '../database/unit-of-work/success.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { messageRecord } from '../messages/queries.ts'
import { messageEvents, type Message } from '../messages/schemas.ts'

/**
 * Gives restored messages the status that their deliveries ended with after the snapshot: no delivery is left that
 * could change it. `failed` when one of them failed, else `delivered`, as for a message whose deliveries were dropped.
 * A queued message that never had a delivery is left to a delivery worker.
 *
 * @returns the events of the messages that changed
 */
export async function settleRestoredMessages ({ dialect, query }: Transaction, account: number): Promise<NewEvent[]> {
  // For EXISTS, PostgreSQL may read the deliveries of all accounts into a hash table.
  const ended = (state: string): string => `(
    SELECT d.id FROM deliveries d
    WHERE d.message_position = messages.position AND d.state = '${state}' LIMIT 1) IS NOT NULL`
  const status = dialect.toEnum(`CASE WHEN ${ended('failed')} THEN 'failed' ELSE 'delivered' END`, 'message_status')
  const settled = await query<{ position: number, status: 'delivered' | 'failed', record: string }>(`
    UPDATE messages SET status = ${status}, version = ${nextVersionSql('version', 'version_floor')}
    WHERE account_id IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})
      AND status IN ('queued', 'processing') AND (
      ${ended('failed')} OR (waiting = 0 AND (status = 'processing' OR ${ended('delivered')})))
    RETURNING position, CAST(status AS text) AS status, ${messageRecord(dialect, 'messages')} AS record`,
  [{ account }])
  return settled
    .sort((a, b) => a.position - b.position)
    .map(({ status, record }) => messageEvents[status]({ message: JSON.parse(record) as Message }))
}
