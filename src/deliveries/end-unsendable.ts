import type { Command } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { updateMessageStatuses, type MessageStep } from '../messages/delivery-status.ts'
import type { DeliveryOutcome } from '../messages/rules.ts'
import { isEnabled, targetsOf, type ClaimInput, type Target } from './claim-targets.ts'
import { deleteOldFailures } from './failed-deliveries.ts'
import { needsWebhook } from './enqueue.ts'

/** Limits the rows that one transaction changes or deletes, all webhooks together. */
const STEP_SIZE = 500

type EndInput = Pick<ClaimInput, 'webhookId' | 'account'>

/**
 * Ends some of the deliveries that will not be sent: those of webhooks that were deleted, or whose account was, the
 * unclaimed ones after a 410, and the expired ones of webhooks that are disabled. The attempts of a deleted webhook go
 * before its last delivery, without which no worker would find it. The record is `true` when there may be more of the
 * webhook.
 */
export const endDeliveries: Command<EndInput, boolean> = {
  name: 'endDeliveries',
  needs: needsWebhook,
  // Only its statements know its messages, so other commands of the group must not hold some already.
  runsAlone: 'with its kind',
  async runAll (tx, inputs) {
    const targets = targetsOf(tx, inputs)
    const steps: MessageStep[] = []
    const unfinished = new Set<EndInput>()
    let left = STEP_SIZE
    for (const input of inputs) {
      const target = targets.get(input.webhookId)
      if (isEnabled(target)) continue
      const outcome: DeliveryOutcome = target === undefined ? 'dropped' : 'failed'
      if (target === undefined && left > 0) left -= await deleteAttempts(tx, input, left)
      const ended = left > 0 ? await endSome(tx, input, target, left) : []
      left -= ended.length
      if (left === 0) unfinished.add(input)
      for (const { message } of ended) if (message !== null) steps.push({ position: message, outcome })
    }
    await deleteOldFailures(tx, [...targets.values()].filter((target) => !isEnabled(target)).map(({ id }) => id))
    const events = await updateMessageStatuses(tx, steps)
    return inputs.map((input, i) => ({ record: unfinished.has(input), events: i === 0 ? events : [] }))
  }
}

/** @returns the number of attempts that it deleted */
async function deleteAttempts (
  { dialect, query }: Transaction, { webhookId: webhook, account }: EndInput, limit: number
): Promise<number> {
  const of = (column: string): string => `(SELECT i.${column} FROM i)`
  const deleted = await query<object>(`
    WITH i AS (
      SELECT i.account, i.webhook, i."limit" AS max_count
      FROM ${dialect.jsonRows('i', { account: 'bigint', webhook: 'bigint', limit: 'bigint' })})
    DELETE FROM webhook_attempts WHERE ${dialect.inSubquery(dialect.rowAddress, `
      SELECT a.${dialect.rowAddress} FROM webhook_attempts a
      WHERE a.account_id = ${of('account')} AND a.webhook_id = ${of('webhook')} LIMIT ${of('max_count')}`)}
    RETURNING id`, [{ account, webhook, limit }])
  return deleted.length
}

/**
 * Ends deliveries of one webhook. They come in the order of the index of waiting deliveries, which a statement that
 * names the webhook once walks without a sort.
 */
async function endSome (
  tx: Transaction, { webhookId: webhook, account }: EndInput, target: Target | undefined, limit: number
): Promise<Array<{ message: number | null }>> {
  const { dialect, query } = tx
  const now = tx.now(account)
  const at = '(SELECT n.now FROM n)'
  const isUnclaimed = '(d.leased_by IS NULL OR d.next_try_at <= (SELECT n.settled FROM n))'
  const condition = target === undefined
    ? ''
    : `AND d.event_id <> 0 ${target.gone ? '' : `AND d.give_up_at <= ${at}`} AND ${isUnclaimed}`
  const withNow = `
    WITH n AS (
      SELECT i.webhook, i."limit" AS max_count, ${dialect.toTime('i.now')} AS now,
        ${dialect.toTime('i.settled')} AS settled
      FROM ${dialect.jsonRows('i', { webhook: 'bigint', limit: 'bigint', now: 'text', settled: 'text' })})`
  const ids = `
    SELECT d.id FROM deliveries d
    WHERE d.state = 'waiting' AND d.webhook_id = (SELECT n.webhook FROM n) ${condition}
    ORDER BY d.next_try_at, d.event_id LIMIT (SELECT n.max_count FROM n)`
  const sql = target === undefined
    ? `${withNow} DELETE FROM deliveries WHERE id IN (${ids}) RETURNING message_position AS message`
    : `${withNow}
      UPDATE deliveries SET state = ${dialect.toEnum("'failed'", 'delivery_state')}, leased_by = NULL,
        settled_at = (SELECT n.settled FROM n)
      WHERE id IN (${ids}) RETURNING message_position AS message`
  return await query(sql, [{ webhook, limit, now, settled: tx.startedAt }])
}
