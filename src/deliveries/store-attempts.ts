import { oncePerDialect } from '../database/dialect.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { webhookAttempts, type WebhookAttemptRow } from '../generated/tables.ts'
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

interface WebhookAttempts extends AttemptCounters { accountId: number, webhookId: number, attempts: NewAttempt[] }

/**
 * Inserts attempts, the oldest first, and deletes those that exceed the limits. The caller has locked the webhooks, and
 * stores the new counters.
 *
 * @returns the new counters of each webhook
 */
export async function insertAttempts (tx: Transaction, webhooks: WebhookAttempts[]): Promise<AttemptCounters[]> {
  const rows: Array<Partial<WebhookAttemptRow>> = []
  const counters = webhooks.map(({ accountId, webhookId, attempts, attemptsMade, attemptBytes }) => {
    for (const { request, answer, body = null, ...attempt } of attempts) {
      const texts = { request: textOf(request), answer: textOf(answer), body }
      for (const text of Object.values(texts)) attemptBytes += text === null ? 0 : Buffer.byteLength(text)
      rows.push({ accountId, webhookId, id: ++attemptsMade, ...attempt, ...texts, totalBytes: attemptBytes })
    }
    return { attemptsMade, attemptBytes }
  })
  await tx.insert(webhookAttempts, rows)
  await tx.execute(deleteOldSql(tx.dialect), webhooks.map(({ accountId: account, webhookId: webhook }, i) => {
    const { attemptsMade, attemptBytes } = counters[i]!
    return { account, webhook, first: attemptsMade - MAX_ATTEMPTS + 1, beyond: attemptBytes - MAX_BYTES }
  }))
  return counters
}

function textOf (part: object | undefined): string | null {
  return part === undefined ? null : JSON.stringify(part)
}

const deleteOldSql = oncePerDialect((dialect) => {
  const ofWebhook = (alias: string): string => `${alias}.account_id = i.account AND ${alias}.webhook_id = i.webhook`
  const before = (id: string): string => `
    SELECT a.${dialect.rowAddress} FROM i CROSS JOIN webhook_attempts a WHERE ${ofWebhook('a')} AND a.id < ${id}`
  // From the oldest on, the first attempt within the limit of bytes is found after those that are deleted.
  return `
    WITH i AS (SELECT * FROM ${dialect.jsonRows('i', {
      account: 'bigint', webhook: 'bigint', first: 'bigint', beyond: 'bigint'
    })})
    DELETE FROM webhook_attempts WHERE ${dialect.inSubquery(dialect.rowAddress, `
      ${before('i.first')} UNION ALL ${before(`(
        SELECT b.id FROM webhook_attempts b WHERE ${ofWebhook('b')} AND b.total_bytes > i.beyond
        ORDER BY b.id LIMIT 1)`)}`)}`
})
