import type { Transaction } from '../database/group-commit/transaction.ts'
import type { DeliveryOutcome } from '../messages/rules.ts'
import type { ClaimInput } from './claim.ts'
import type { Target } from './claim-targets.ts'

/** Limits the deliveries that one transaction fails or deletes. */
export const STEP_SIZE = 500

interface EndedDeliveries {
  ended: Array<{ message: number | null }>
  outcome: DeliveryOutcome
}

/**
 * Ends some of the deliveries that will not be sent: those of a webhook that was deleted, or whose account was, the
 * unclaimed ones after a 410, and the expired ones of a webhook that is disabled. They come in the order of the index
 * of waiting deliveries, which a statement that names the webhook once walks without a sort.
 */
export async function endUnsendable (
  tx: Transaction, { webhookId: webhook, account }: ClaimInput, target: Target | undefined
): Promise<EndedDeliveries> {
  const { dialect, query } = tx
  const now = tx.now(account)
  if (target !== undefined && Boolean(target.enabled)) return { ended: [], outcome: 'failed' }
  const at = '(SELECT n.now FROM n)'
  const isUnclaimed = `(d.leased_by IS NULL OR d.next_try_at <= ${at})`
  const condition = target === undefined
    ? ''
    : `AND d.event_id <> 0 ${target.gone ? '' : `AND d.give_up_at <= ${at}`} AND ${isUnclaimed}`
  const withNow = `
    WITH n AS (
      SELECT i.webhook, ${dialect.toTime('i.now')} AS now, ${dialect.toTime('i.settled')} AS settled
      FROM ${dialect.jsonRows('i', { webhook: 'bigint', now: 'text', settled: 'text' })})`
  const ids = `
    SELECT d.id FROM deliveries d
    WHERE d.state = 'waiting' AND d.webhook_id = (SELECT n.webhook FROM n) ${condition}
    ORDER BY d.next_try_at, d.event_id LIMIT ${STEP_SIZE}`
  const sql = target === undefined
    ? `${withNow} DELETE FROM deliveries WHERE id IN (${ids}) RETURNING message_position AS message`
    : `${withNow}
      UPDATE deliveries SET state = ${dialect.toEnum("'failed'", 'delivery_state')}, leased_by = NULL,
        settled_at = (SELECT n.settled FROM n)
      WHERE id IN (${ids}) RETURNING message_position AS message`
  const ended = await query<{ message: number | null }>(sql, [{ webhook, now, settled: tx.startedAt }])
  return { ended, outcome: target === undefined ? 'dropped' : 'failed' }
}
