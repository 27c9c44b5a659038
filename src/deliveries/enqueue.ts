import { timeText } from '../database/account-clocks.ts'
import type { RowLock } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import type { Table } from '../database/table.ts'
import type { EventSubscribers, NumberedEvent } from '../events/event-log.ts'

/** How long a delivery is tried, or waits for a disabled webhook: about a day. */
export const DELIVERY_LIFETIME_MS = 24 * 60 * 60 * 1000

/** The due time of what goes before all other deliveries: a test, and what was claimed but not sent. */
export const HEAD_OF_QUEUE = '1970-01-01T00:00:00.000Z'

/** The queue; a webhook's deliveries are deleted by a worker once the webhook is gone. */
export const deliveryTable: Table = { name: 'deliveries', id: 'id', columns: {} }

/** Locks a webhook's row, which stands for its deliveries. */
export function lockWebhook (webhookId: number): RowLock {
  return { table: { name: 'webhooks', id: 'id' }, ids: [webhookId], mode: 'update' }
}

/** Webhooks, as subscribers of the event log. */
export const webhookSubscribers: EventSubscribers = {
  // For EXISTS, PostgreSQL may read the webhooks of all accounts into a hash table.
  exist: (account) => `(SELECT w.id FROM webhooks w WHERE w.account_id = ${account} AND w.enabled LIMIT 1) IS NOT NULL`,
  enqueue: enqueueDeliveries
}

/**
 * Enqueues events for the webhooks that are enabled and subscribed to their types at this moment, and stores for how
 * many answers a message waits. Runs while the accounts' counters are locked, so that the due times, by which
 * deliveries are started, ascend with the events.
 */
async function enqueueDeliveries (
  { dialect, query, execute, clockOffset }: Transaction, events: NumberedEvent[]
): Promise<boolean> {
  const now = Date.now()
  const timeOf = (account: number, ms = 0): string => timeText(now + clockOffset(account) + ms)
  const columns = {
    account: 'bigint', id: 'bigint', type: 'text', message: 'bigint', at: 'text', giveUp: 'text'
  } as const
  const enqueued = await query<{ position: number | null }>(`
    INSERT INTO deliveries (account_id, event_id, webhook_id, message_position, next_try_at, give_up_at)
    SELECT i.account, i.id, w.id, i.message, ${dialect.toTime('i.at')}, ${dialect.toTime('i."giveUp"')}
    FROM ${dialect.jsonRows('i', columns)}
    JOIN webhooks w ON w.account_id = i.account AND w.enabled AND w.events LIKE '%"' || i.type || '"%'
    RETURNING message_position AS position`,
  events.map(({ account, id, type, tracks: message }) => ({
    account, id, type, message, at: timeOf(account), giveUp: timeOf(account, DELIVERY_LIFETIME_MS)
  })))

  const waiting = new Map<number, number>()
  for (const { position } of enqueued) {
    if (position !== null) waiting.set(position, (waiting.get(position) ?? 0) + 1)
  }
  await execute(`
    UPDATE messages SET waiting = i.waiting FROM ${dialect.jsonRows('i', { position: 'bigint', waiting: 'bigint' })}
    WHERE messages.position = i.position`, [...waiting].map(([position, waiting]) => ({ position, waiting })))
  return enqueued.length > 0
}
