import type { Dialect } from '../database/dialect.ts'
import { etagOf } from '../database/record.ts'
import { queryOfShape } from '../database/reads/query-shapes.ts'
import type { Query, Read } from '../database/reads/query.ts'
import { json, jsonObject, optional, type SerializedRecord } from '../database/sql/json-object.ts'
import type { Page, PageRequest } from '../database/sql/keyset-pagination.ts'
import { membersOf } from '../database/sql/record-queries.ts'
import { WebhookAttemptDetailSchema, WebhookAttemptSchema } from '../deliveries/schemas.ts'
import { eventJson } from '../events/queries.ts'
import { webhookAttempts } from '../generated/tables.ts'

const listed = (dialect: Dialect): string =>
  jsonObject(dialect, membersOf(webhookAttempts, WebhookAttemptSchema, 'a'))

interface PageInput { account: number, webhook: number, after: number, eventId?: unknown, status?: unknown }

/** Walks the primary key downwards. A webhook has 1,000 attempts at most, so filters need no index of their own. */
function pageQuery (limit: number): Query<PageInput, Page> {
  return {
    isCostly: true,
    sql (dialect) {
      const count = dialect.limit('i', limit)
      const rows = `
        FROM webhook_attempts a WHERE a.account_id = i.account AND a.webhook_id = i.webhook AND a.id < i.after
          AND (i."eventId" IS NULL OR a.event_id = i."eventId") AND (i.status IS NULL OR a.status = i.status)
        ORDER BY a.id DESC`
      return `
        SELECT i.ord, (SELECT '[' || coalesce(string_agg(x.json, ',' ORDER BY x.id DESC), '') || ']'
            FROM (SELECT a.id, ${listed(dialect)} AS json ${rows} LIMIT ${count}) AS x) AS records,
          (SELECT CASE WHEN count(*) = 2 THEN max(y.id) END
            FROM (SELECT a.id ${rows} LIMIT 2 OFFSET ${count} - 1) AS y) AS next
        FROM ${dialect.jsonRows('i', {
          ord: 'ordinality',
          account: 'bigint',
          webhook: 'bigint',
          after: 'bigint',
          limit: 'bigint',
          eventId: 'bigint',
          status: 'bigint'
        })}
        JOIN webhooks w ON w.id = i.webhook AND w.account_id = i.account`
    }
  }
}

/** Returns a page of the attempts of a webhook, newest first; `undefined` if the account has no such webhook. */
export async function listAttempts (
  read: Read, account: number, webhook: number, { limit, after, filters }: PageRequest
): Promise<Page | undefined> {
  const query = queryOfShape(`attempts ${limit}`, () => pageQuery(limit))
  const position = { account, webhook, after: after ?? Number.MAX_SAFE_INTEGER }
  return await read(query, { ...position, limit, ...filters } as PageInput)
}

/** Returns the request as JSON, with its body: the test, or the event unless it has expired. */
function requestOf (dialect: Dialect): string {
  const body = `coalesce(a.body, ${eventJson(dialect)})`
  return `substr(a.request, 1, length(a.request) - 1) ||
    CASE WHEN ${body} IS NULL THEN '' ELSE ',"body":' || ${dialect.quote(body)} END || '}'`
}

const detail = (dialect: Dialect): string => jsonObject(dialect, membersOf(
  webhookAttempts, WebhookAttemptDetailSchema, 'a',
  { request: optional(json(requestOf(dialect))), answer: optional(json('a.answer')) }
))

interface DetailRow { record: string | null, hasBody: boolean | number | bigint }

const attemptById: Query<{ account: number, webhook: number, id: number }, DetailRow> = {
  // The largest events have 61 KB, and their text is quoted.
  maxRowBytes: 200_000,
  sql: (dialect) => `
    SELECT i.ord, a.body IS NOT NULL OR e.id IS NOT NULL AS "hasBody",
      CASE WHEN a.id IS NOT NULL THEN ${detail(dialect)} END AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', webhook: 'bigint', id: 'bigint' })}
    JOIN webhooks w ON w.id = i.webhook AND w.account_id = i.account
    LEFT JOIN webhook_attempts a ON a.account_id = i.account AND a.webhook_id = i.webhook AND a.id = i.id
    LEFT JOIN events e ON e.account_id = a.account_id AND e.id = a.event_id`
}

/** Returns an attempt; `null` if the webhook has none with this id, `undefined` if the account has no such webhook. */
export async function findAttempt (
  read: Read, account: number, webhook: number, id: number
): Promise<SerializedRecord | null | undefined> {
  const row = await read(attemptById, { account, webhook, id })
  if (row === undefined || row.record === null) return row && null
  // Nothing of an attempt changes, but its event expires.
  return { record: row.record, etag: etagOf(row.hasBody ? 1 : 2) }
}
