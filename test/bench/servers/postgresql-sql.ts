import { hasWebhooks } from './store.ts'

export interface NewEvent {
  /** The part of the statement that has a row if the event happened. */
  source: string
  type: string
  /** The parameter with the time. */
  time: string
  /** SQL for the JSON. */
  data: string
  /** More tables that `data` reads. */
  from?: string
}

/**
 * Returns the parts of a statement that write an event: its number from the account's counter, the event, and its
 * deliveries. They do nothing unless `source` has a row.
 */
export function eventSql ({ source, type, time, data, from = '' }: NewEvent): string {
  const deliveries = `,
    queued AS (
      INSERT INTO deliveries (account_id, event_id, webhook_id, next_try_at, give_up_at)
      SELECT w.account_id, event.id, w.id, ${time}::timestamp, ${time}::timestamp + interval '1 day'
      FROM event, webhooks w WHERE w.account_id = $1::bigint AND w.enabled AND w.events LIKE '%"${type}"%'
    )`
  return `
    counted AS (
      UPDATE accounts SET last_event_id = last_event_id + 1 FROM ${source} WHERE accounts.id = $1::bigint
      RETURNING last_event_id
    ),
    event AS (
      INSERT INTO events (account_id, id, type, timestamp, data)
      SELECT $1::bigint, counted.last_event_id, '${type}', ${time}::timestamp, ${data}
      FROM ${source}, counted ${from} RETURNING id
    )${hasWebhooks ? deliveries : ''}`
}

/**
 * Returns the part of a statement that stores its response. If the key was used before, the whole statement fails and
 * changes nothing; while another transaction uses it, the statement waits.
 *
 * @param key the parameters with the key and the fingerprint
 */
export function responseSql (
  source: string, time: string, [key, fingerprint]: [string, string], record: string
): string {
  return `,
    response AS (
      INSERT INTO idempotency_records (account_id, key, fingerprint, record, etag, created_at, expires_at)
      SELECT $1::bigint, ${key}::text, ${fingerprint}::text, ${record}, '"1"',
        ${time}::timestamp, ${time}::timestamp + interval '1 day' FROM ${source}
    )`
}

/** Returns SQL for ten digits of base 36. */
export function base36 (number: string): string {
  return Array.from(
    { length: 10 },
    (_, i) => `substr('0123456789abcdefghijklmnopqrstuvwxyz', (${number} / ${36 ** (9 - i)} % 36)::int + 1, 1)`
  ).join(' || ')
}
