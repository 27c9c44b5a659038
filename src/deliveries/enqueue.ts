import type { Dialect } from '../database/dialect.ts'
import type { AccountNeeds } from '../database/unit-of-work/load.ts'
import { forUpdate } from '../database/unit-of-work/write.ts'
import type { EventSubscribers } from '../events/event-log.ts'
import { webhooks, type DeliveryRow } from '../generated/tables.ts'

/** How long a delivery is tried, or waits for a disabled webhook: about a day. */
export const DELIVERY_LIFETIME_MS = 24 * 60 * 60 * 1000

/** The due time of what goes before all other deliveries: a test. */
export const HEAD_OF_QUEUE = '1970-01-01T00:00:00.000Z'

/** Returns the delivery of a test, which has no event and goes before all others. */
export function testDelivery (webhookId: number, now: string): Partial<DeliveryRow> {
  return { webhookId, eventId: 0, nextTryAt: HEAD_OF_QUEUE, giveUpAt: now }
}

/**
 * Returns an SQL condition: whether a delivery `d` is in a state, by the index of those that were not accepted, whose
 * condition is the second one. The state as a subquery keeps PostgreSQL from the index of waiting deliveries.
 */
export function isInState (dialect: Dialect, state: 'waiting' | 'failed'): string {
  return `d.state = (SELECT ${dialect.toEnum(`'${state}'`, 'delivery_state')}) AND d.state <> 'delivered'`
}

/** Needs a webhook, whose row stands for its deliveries. */
export function needsWebhook ({ account, webhookId }: { account: number, webhookId: number }): AccountNeeds {
  return { account, needs: [forUpdate(webhooks, webhookId)] }
}

/**
 * Webhooks, as subscribers of the event log: events are enqueued for the webhooks that are enabled and subscribed to
 * their types at this moment, and a message stores for how many answers it waits. The accounts' counters are locked
 * meanwhile, so that the due times, by which deliveries are started, ascend with the events, but for some ms between
 * two groups that write at a time.
 */
export const webhookSubscribers: EventSubscribers = {
  table: 'webhooks',
  // For EXISTS, PostgreSQL may read the webhooks of all accounts into a hash table.
  exist: (account) => `(SELECT w.id FROM webhooks w WHERE w.account_id = ${account} AND w.enabled LIMIT 1) IS NOT NULL`,
  lifetimeMs: DELIVERY_LIFETIME_MS,
  enqueue (dialect, events, counters) {
    const subscribed = "w.account_id = i.account AND w.enabled AND w.events LIKE '%\"' || i.type || '\"%'"
    return {
      insert: `
        INSERT INTO deliveries (account_id, event_id, webhook_id, message_position, next_try_at, give_up_at)
        SELECT i.account, c.last - i.later, w.id, i.tracks, ${dialect.toTime('c.now')}, ${dialect.toTime('c."giveUp"')}
        FROM ${events} JOIN ${counters} ON c.id = i.account JOIN webhooks w ON ${subscribed}
        RETURNING message_position AS position`,
      track: dialect.isServer
        ? `UPDATE messages SET waiting = e.count
           FROM (SELECT position, count(*) AS count FROM enqueued WHERE position IS NOT NULL GROUP BY position) AS e
           WHERE messages.position = e.position`
        : `UPDATE messages SET waiting = (SELECT count(*) FROM webhooks w WHERE ${subscribed})
           FROM ${events} WHERE messages.position = i.tracks`
    }
  }
}
