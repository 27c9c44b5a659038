import type { Query, Read } from '../database/read-batching.ts'

/** What there is to deliver. */
export interface Due {
  /** Newest message that no webhook is asked about; 0 when there is none. */
  messages: number
  /** By webhook, when something is to be done for it, in ms; now or earlier when it is due. */
  webhooks: Array<{ id: number, at: number, disabled: boolean }>
}

/** The first waiting delivery of a webhook, by the index of what waits. */
const first = (webhook: string, column: string): string =>
  `SELECT d.${column} FROM deliveries d WHERE d.state = 'waiting' AND d.webhook_id ${webhook} ORDER BY d.webhook_id, d.next_try_at, d.event_id LIMIT 1`

/** Skips through the index from webhook to webhook, however much waits for each. */
const dueQuery: Query<object, { messages: bigint | null, webhooks: string | null }> = {
  sql: (dialect) => `
    SELECT i.ord,
      (SELECT m.position FROM messages m WHERE m.status = 'queued' AND m.waiting = 0 ORDER BY m.position DESC LIMIT 1) AS messages,
      (WITH RECURSIVE walk(webhook) AS (
        SELECT (${first('> 0', 'webhook_id')})
        UNION ALL
        SELECT (${first('> walk.webhook', 'webhook_id')}) FROM walk WHERE walk.webhook IS NOT NULL
      )
      SELECT ${dialect.join(`
        CASE WHEN w.id IS NULL OR (w.gone AND f.event_id <> 0) THEN walk.webhook || ' '
          WHEN w.enabled OR f.event_id = 0 THEN walk.webhook || ' ' || ${dialect.time('f.next_try_at')}
          ELSE walk.webhook || ' ' || ${dialect.time('f.give_up_at')} || ' disabled' END`, 'walk.webhook')}
      FROM walk
      JOIN deliveries f ON f.id = (${first('= walk.webhook', 'id')})
      LEFT JOIN webhooks w ON w.id = walk.webhook) AS webhooks
    FROM ${dialect.jsonRows('i', { ord: 'ordinality' })}`
}

export async function findDue (read: Read): Promise<Due> {
  const row = await read(dueQuery, {})
  const webhooks = (row?.webhooks ?? '').split(',').filter((text) => text !== '').map((text) => {
    const [id, at = '', disabled] = text.split(' ')
    return { id: Number(id), at: at === '' ? 0 : Date.parse(at), disabled: disabled !== undefined }
  })
  return { messages: Number(row?.messages ?? 0), webhooks }
}
