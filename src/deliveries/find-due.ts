import type { AccountClocks } from '../database/account-clocks.ts'
import type { Dialect } from '../database/dialect.ts'
import type { Query, Read } from '../database/reads/query.ts'
import { isLeasedElsewhere } from './leases.ts'

export interface DueWebhook {
  id: number
  account: number
  /** Time in ms at which a dispatcher has to act; now or earlier when it is due. */
  at: number
  disabled: boolean
  /** Real time in ms at which the last lease of another worker ends; 0 without one. */
  leasedUntil: number
}

/** Work that a delivery worker has to do. */
export interface DueWork {
  /** Position of the newest queued message without deliveries; 0 when there is none. */
  newestMessage: number
  /** The next webhooks with pending deliveries, by id. */
  webhooks: DueWebhook[]
  /** The webhooks of deliveries that were added since the last poll. */
  fresh: DueWebhook[]
  /** Id of the newest delivery. */
  newest: number
  /** Id of the webhook after which others may follow; 0 when there are no more. */
  next: number
}

/**
 * Maximum number of webhooks that one statement looks at, disabled ones included, whose deliveries wait for a day: it
 * takes about 10 ms on SQLite, which blocks the process. With its pause, a smaller page would make a pass longer.
 */
const PAGE_SIZE = 500

/**
 * Maximum number of new deliveries whose webhooks a poll looks at, whatever the place of the webhooks in the pass: on
 * SQLite it takes about a millisecond. The pass finds those of larger bursts, and of transactions that got their ids
 * earlier and committed later.
 */
const MAX_FRESH = 2_000

/** Selects a column of a webhook's first pending delivery, by the index of pending deliveries. */
const firstPending = (webhook: string, column: string): string => `
  SELECT d.${column} FROM deliveries d WHERE d.state = 'waiting' AND d.webhook_id ${webhook}
  ORDER BY d.webhook_id, d.next_try_at, d.event_id LIMIT 1`

/** Selects the end of the last lease that another worker has for a webhook. */
const LEASE_ELSEWHERE = `(
  SELECT max(o.next_try_at) FROM deliveries o
  WHERE o.webhook_id = walk.webhook AND o.leased_by IS NOT NULL AND ${isLeasedElsewhere('o', 'i.worker')})`

/** Selects a text for each webhook of a FROM item, which has it as `walk.webhook`: what `parseWebhook` reads. */
const describe = (dialect: Dialect, webhooks: string): string => `
  SELECT string_agg(
    walk.webhook || ' ' || f.account_id || ' ' ||
    CASE WHEN w.id IS NULL OR (w.gone AND f.event_id <> 0) THEN ''
      WHEN w.enabled OR f.event_id = 0
        THEN ${dialect.time('f.next_try_at')} || coalesce(' ' || ${dialect.time(LEASE_ELSEWHERE)}, '')
      ELSE ${dialect.time('f.give_up_at')} || ' disabled' END, ',' ORDER BY walk.webhook)
  FROM ${webhooks}
  JOIN deliveries f ON f.id = (${firstPending('= walk.webhook', 'id')})
  LEFT JOIN webhooks w ON w.id = walk.webhook`

interface DueRow { messages: bigint | null, newest: bigint | null, fresh: string | null, webhooks: string | null }

/** Skips in the index from webhook to webhook: its cost does not depend on the number of pending deliveries. */
const dueQuery: Query<{ worker: string, after: number, seen: number }, DueRow> = {
  sql: (dialect) => `
    SELECT i.ord,
      (SELECT m.position FROM messages m WHERE m.status = 'queued' AND m.waiting = 0
        ORDER BY m.position DESC LIMIT 1) AS messages,
      (SELECT max(d.id) FROM deliveries d) AS newest,
      (${describe(dialect, `(
        SELECT DISTINCT v.webhook FROM (
          SELECT d.webhook_id AS webhook FROM deliveries d WHERE d.id > i.seen ORDER BY d.id DESC LIMIT ${MAX_FRESH}) AS v
        ) AS walk`)}) AS fresh,
      (WITH RECURSIVE walk(webhook, n) AS (
        SELECT (${firstPending('> i.after', 'webhook_id')}), 1
        UNION ALL
        SELECT (${firstPending('> walk.webhook', 'webhook_id')}), walk.n + 1 FROM walk
        WHERE walk.webhook IS NOT NULL AND walk.n < ${PAGE_SIZE}
      )
      ${describe(dialect, 'walk')}) AS webhooks
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', worker: 'text', after: 'bigint', seen: 'bigint' })}`
}

/**
 * Finds the due work for a worker, a page of webhooks at a time, and the webhooks of new deliveries.
 *
 * @param clocks deliveries are due by the clocks of their accounts
 * @param after id of the webhook at which the page before ended
 * @param seen `newest` of the last poll; the first finds no new ones
 */
export async function findDueWork (
  read: Read, clocks: AccountClocks, worker: string, after: number, seen = Number.MAX_SAFE_INTEGER
): Promise<DueWork> {
  const row = await read(dueQuery, { worker, after, seen })
  const [webhooks, fresh] = [row?.webhooks, row?.fresh].map((texts) =>
    (texts ?? '').split(',').filter((text) => text !== '').map((text) => parseWebhook(text, clocks)))
  const next = webhooks!.length < PAGE_SIZE ? 0 : webhooks!.at(-1)!.id
  const [newestMessage, newest] = [row?.messages, row?.newest].map((id) => Number(id ?? 0))
  return { newestMessage: newestMessage!, webhooks: webhooks!, fresh: fresh!, newest: newest!, next }
}

function parseWebhook (text: string, clocks: AccountClocks): DueWebhook {
  const [id, account, at = '', state = ''] = text.split(' ')
  const disabled = state === 'disabled'
  return {
    id: Number(id),
    account: Number(account),
    at: at === '' ? 0 : Date.parse(at) - clocks.offsetOf(Number(account)),
    disabled,
    leasedUntil: disabled || state === '' ? 0 : Date.parse(state)
  }
}
