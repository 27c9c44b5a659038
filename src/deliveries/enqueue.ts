import type { Transaction } from '../database/group-commit/transaction.ts'

/** How long a delivery is tried, or waits for a webhook that was switched off, in ms: about a day. */
export const DELIVERY_LIFETIME_MS = 24 * 60 * 60 * 1000

/** When something is to be tried that goes before whatever waits: a test, and what was taken but not sent. */
export const HEAD_OF_QUEUE = '1970-01-01T00:00:00.000Z'

/**
 * Queues events for the webhooks that are enabled and subscribed to their types at this moment, and notes
 * for how many answers a message waits. Called while the accounts' counters are locked, so that the
 * times, by which deliveries are started, ascend with the events.
 *
 * @returns whether any was queued
 */
export async function enqueueDeliveries ({ dialect, query, execute }: Transaction, events: Array<{ account: number, id: number, type: string, message: number | undefined }>): Promise<boolean> {
  const now = Date.now()
  const at = new Date(now).toISOString()
  const giveUp = new Date(now + DELIVERY_LIFETIME_MS).toISOString()
  const queued = await query<{ position: number | null }>(`
    INSERT INTO deliveries (account_id, event_id, webhook_id, message_position, next_try_at, give_up_at)
    SELECT i.account, i.id, w.id, i.message, ${dialect.toTime('i.at')}, ${dialect.toTime('i."giveUp"')}
    FROM ${dialect.jsonRows('i', { account: 'bigint', id: 'bigint', type: 'text', message: 'bigint', at: 'text', giveUp: 'text' })}
    JOIN webhooks w ON w.account_id = i.account AND w.enabled AND w.events LIKE '%"' || i.type || '"%'
    RETURNING message_position AS position`, events.map((event) => ({ ...event, at, giveUp })))

  const waiting = new Map<number, number>()
  for (const { position } of queued) {
    if (position !== null) waiting.set(position, (waiting.get(position) ?? 0) + 1)
  }
  await execute(`
    UPDATE messages SET waiting = i.waiting FROM ${dialect.jsonRows('i', { position: 'bigint', waiting: 'bigint' })}
    WHERE messages.position = i.position`, [...waiting].map(([position, waiting]) => ({ position, waiting })))
  return queued.length > 0
}
