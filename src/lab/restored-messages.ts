import { nextVersionSql } from '../database/entity-tag.ts'
import type { NewEvent } from '../database/unit-of-work/success.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { messageRecord } from '../messages/queries.ts'
import { messageEvents, type Message } from '../messages/schemas.ts'

/**
 * Gives restored messages the status that their deliveries ended with after the snapshot: no delivery is left that
 * could change it. `failed` when one of them failed, else `delivered`, as for a message whose deliveries were dropped.
 * Call it when `waiting` is counted. A queued message that never had a delivery is left to a delivery worker.
 *
 * @returns the events of the messages that changed
 */
export async function settleRestoredMessages ({ dialect, query }: Transaction, account: number): Promise<NewEvent[]> {
  const ended = (state: string): string => `EXISTS (
    SELECT 1 FROM d WHERE d.position = messages.position AND d.state = ${dialect.toEnum(`'${state}'`, 'delivery_state')})`
  const status = dialect.toEnum(`CASE WHEN ${ended('failed')} THEN 'failed' ELSE 'delivered' END`, 'message_status')
  const settled = await query<{ position: number, status: 'delivered' | 'failed', record: string }>(`
    WITH i AS (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })}),
    d AS (
      SELECT d.message_position AS position, d.state FROM deliveries d
      WHERE d.account_id IN (SELECT i.account FROM i) AND d.state <> 'waiting' AND d.message_position IS NOT NULL)
    UPDATE messages SET status = ${status}, version = ${nextVersionSql('version', 'version_floor')}
    WHERE account_id IN (SELECT i.account FROM i) AND status IN ('queued', 'processing') AND (
      ${ended('failed')} OR (waiting = 0 AND (status = 'processing' OR ${ended('delivered')})))
    RETURNING position, ${dialect.fromEnum('status')} AS status, ${messageRecord(dialect, 'messages')} AS record`,
  [{ account }])
  return settled
    .sort((a, b) => a.position - b.position)
    .map(({ status, record }) => messageEvents[status]({ message: JSON.parse(record) as Message }))
}
