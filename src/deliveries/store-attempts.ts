import { oncePerDialect } from '../database/dialect.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import type { Exchange, WebhookAttempt } from './schemas.ts'

/** Limit the attempts of a webhook that are kept: their number, and the bytes of their requests and responses. */
const MAX_ATTEMPTS = 1_000
const MAX_BYTES = 2_097_152

/** An attempt before it has a number. */
export type NewAttempt = Omit<WebhookAttempt, 'id'> & Exchange & {
  /** The body of a test, which is no stored event. */
  body?: string | undefined
}

/** How many attempts a webhook had, and their bytes. */
export interface AttemptCounters { attemptsMade: number, attemptBytes: number }

interface WebhookAttempts extends AttemptCounters { account: number, webhookId: number, attempts: NewAttempt[] }

/**
 * Inserts attempts, the oldest first, and deletes those that exceed the limits. The caller has locked the webhooks, and
 * stores the new counters.
 *
 * @returns the new counters of each webhook
 */
export async function insertAttempts (tx: Transaction, webhooks: WebhookAttempts[]): Promise<AttemptCounters[]> {
  const rows: object[] = []
  const counters = webhooks.map(({ account, webhookId: webhook, attempts, attemptsMade, attemptBytes }) => {
    for (const { eventId, at, status, error, durationMs, nextTryAt, request, answer, body } of attempts) {
      const texts = { request: textOf(request), answer: textOf(answer), body }
      for (const text of Object.values(texts)) attemptBytes += text === undefined ? 0 : Buffer.byteLength(text)
      const columns = { eventId, at, status, error, durationMs, nextTryAt, ...texts }
      rows.push({ account, webhook, id: ++attemptsMade, ...columns, totalBytes: attemptBytes })
    }
    return { attemptsMade, attemptBytes }
  })
  const { insert, deleteOld } = sqlOf(tx.dialect)
  await tx.execute(insert, rows)
  await tx.execute(deleteOld, webhooks.map(({ account, webhookId: webhook }, i) => {
    const { attemptsMade, attemptBytes } = counters[i]!
    return { account, webhook, first: attemptsMade - MAX_ATTEMPTS + 1, beyond: attemptBytes - MAX_BYTES }
  }))
  return counters
}

function textOf (part: object | undefined): string | undefined {
  return part && JSON.stringify(part)
}

const sqlOf = oncePerDialect((dialect) => {
  const columns = dialect.jsonRows('i', {
    account: 'bigint',
    webhook: 'bigint',
    id: 'bigint',
    eventId: 'bigint',
    at: 'text',
    status: 'bigint',
    error: 'text',
    durationMs: 'bigint',
    nextTryAt: 'text',
    request: 'text',
    body: 'text',
    answer: 'text',
    totalBytes: 'bigint'
  })
  const ofWebhook = (alias: string): string => `${alias}.account_id = i.account AND ${alias}.webhook_id = i.webhook`
  const before = (id: string): string => `
    SELECT a.${dialect.rowAddress} FROM i CROSS JOIN webhook_attempts a WHERE ${ofWebhook('a')} AND a.id < ${id}`
  return {
    insert: `
      INSERT INTO webhook_attempts (account_id, webhook_id, id, event_id, at, status, error, duration_ms, next_try_at,
        request, body, answer, total_bytes)
      SELECT i.account, i.webhook, i.id, i."eventId", ${dialect.toTime('i.at')}, i.status, i.error, i."durationMs",
        ${dialect.toTime('i."nextTryAt"')}, i.request, i.body, i.answer, i."totalBytes"
      FROM ${columns}`,
    // From the oldest on, the first attempt within the limit of bytes is found after those that are deleted.
    deleteOld: `
      WITH i AS (SELECT * FROM ${dialect.jsonRows('i', {
        account: 'bigint', webhook: 'bigint', first: 'bigint', beyond: 'bigint'
      })})
      DELETE FROM webhook_attempts WHERE ${dialect.inSubquery(dialect.rowAddress, `
        ${before('i.first')} UNION ALL ${before(`(
          SELECT b.id FROM webhook_attempts b WHERE ${ofWebhook('b')} AND b.total_bytes > i.beyond
          ORDER BY b.id LIMIT 1)`)}`)}`
  }
})
