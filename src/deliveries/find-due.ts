import type { AccountClocks } from '../database/account-clocks.ts'
import type { Query, Read } from '../database/reads/query.ts'

export interface DueWebhook {
  id: number
  account: number
  /** Time in ms at which a dispatcher has to act; now or earlier when it is due. */
  at: number
  disabled: boolean
}

/** Work that a delivery worker has to do. */
export interface DueWork {
  /** Position of the newest queued message without deliveries; 0 when there is none. */
  newestMessage: number
  /** Webhooks with pending deliveries. */
  webhooks: DueWebhook[]
}

/** Selects a column of a webhook's first pending delivery, by the index of pending deliveries. */
const firstPending = (webhook: string, column: string): string => `
  SELECT d.${column} FROM deliveries d WHERE d.state = 'waiting' AND d.webhook_id ${webhook}
  ORDER BY d.webhook_id, d.next_try_at, d.event_id LIMIT 1`

/** Skips in the index from webhook to webhook: its cost does not depend on the number of pending deliveries. */
const dueQuery: Query<object, { messages: bigint | null, webhooks: string | null }> = {
  sql: (dialect) => `
    SELECT i.ord,
      (SELECT m.position FROM messages m WHERE m.status = 'queued' AND m.waiting = 0
        ORDER BY m.position DESC LIMIT 1) AS messages,
      (WITH RECURSIVE walk(webhook) AS (
        SELECT (${firstPending('> 0', 'webhook_id')})
        UNION ALL
        SELECT (${firstPending('> walk.webhook', 'webhook_id')}) FROM walk WHERE walk.webhook IS NOT NULL
      )
      SELECT ${dialect.join(`
        walk.webhook || ' ' || f.account_id || ' ' ||
        CASE WHEN w.id IS NULL OR (w.gone AND f.event_id <> 0) THEN ''
          WHEN w.enabled OR f.event_id = 0 THEN ${dialect.time('f.next_try_at')}
          ELSE ${dialect.time('f.give_up_at')} || ' disabled' END`, 'walk.webhook')}
      FROM walk
      JOIN deliveries f ON f.id = (${firstPending('= walk.webhook', 'id')})
      LEFT JOIN webhooks w ON w.id = walk.webhook) AS webhooks
    FROM ${dialect.jsonRows('i', { ord: 'ordinality' })}`
}

/** @param clocks deliveries are due by the clocks of their accounts */
export async function findDueWork (read: Read, clocks: AccountClocks): Promise<DueWork> {
  const row = await read(dueQuery, {})
  const webhooks = (row?.webhooks ?? '').split(',').filter((text) => text !== '').map((text) => {
    const [id, account, at = '', disabled] = text.split(' ')
    const dueAt = at === '' ? 0 : Date.parse(at) - clocks.offsetOf(Number(account))
    return { id: Number(id), account: Number(account), at: dueAt, disabled: disabled !== undefined }
  })
  return { newestMessage: Number(row?.messages ?? 0), webhooks }
}
