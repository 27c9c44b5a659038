import type { Transaction } from '../database/group-commit/transaction.ts'

/** Number of failed deliveries of a webhook that are kept, so that their events can be sent again. */
const MAX_FAILED = 10_000

/** Deletes the oldest failed deliveries of webhooks that have more than `MAX_FAILED`. */
export async function deleteOldFailures ({ dialect, execute }: Transaction, webhooks: Iterable<number>): Promise<void> {
  // The second condition is that of the index.
  const isFailed = (alias: string): string =>
    `${alias}.webhook_id = i.webhook AND ${alias}.state = 'failed' AND ${alias}.state <> 'delivered'`
  await execute(`
    DELETE FROM deliveries WHERE ${dialect.inSubquery('id', `
      SELECT d.id FROM ${dialect.jsonRows('i', { webhook: 'bigint' })} CROSS JOIN deliveries d
      WHERE ${isFailed('d')} AND d.event_id <= (
        SELECT o.event_id FROM deliveries o WHERE ${isFailed('o')}
        ORDER BY o.event_id DESC LIMIT 1 OFFSET ${MAX_FAILED})`)}`,
  Array.from(new Set(webhooks), (webhook) => ({ webhook })))
}
