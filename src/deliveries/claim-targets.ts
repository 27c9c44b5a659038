import type { Transaction } from '../database/group-commit/transaction.ts'

export interface ClaimInput {
  webhookId: number
  account: number
  worker: string
  /** Limits the deliveries that are claimed. */
  limit: number
  /** Duration of the lease; `LEASE_MS` by default. */
  leaseMs?: number | undefined
}

/** The webhook of a claim. */
export interface Target {
  id: number
  account: number
  /** How far the account's clock is ahead, in seconds. */
  offset: number
  url: string
  enabled: boolean | number
  /** The receiver answered 410. */
  gone: boolean | number
  secret: string
  previousSecret: string | null
  previousUntil: string | null
}

/** @returns the webhooks that are not deleted, by id */
export async function loadTargets (
  { dialect, query, confirmClock }: Transaction, inputs: Array<{ webhookId: number }>
): Promise<Map<number, Target>> {
  const rows = await query<Target>(`
    SELECT w.id, w.account_id AS account, a.clock_offset_seconds AS "offset", w.url, w.enabled, w.gone, w.secret,
      w.previous_secret AS "previousSecret",
      ${dialect.time('w.previous_until')} AS "previousUntil"
    FROM webhooks w JOIN accounts a ON a.id = w.account_id AND a.deleted_at IS NULL
    WHERE w.id IN (SELECT i."webhookId" FROM ${dialect.jsonRows('i', { webhookId: 'bigint' })})`,
  inputs.map(({ webhookId }) => ({ webhookId })))
  for (const { account, offset } of rows) confirmClock(account, offset * 1000)
  return new Map(rows.map((row) => [row.id, row]))
}

/** Returns the secrets that sign an event. */
export function secretsOf ({ secret, previousSecret, previousUntil }: Target, now: string): string[] {
  const hasPrevious = previousSecret !== null && previousUntil !== null && previousUntil > now
  return hasPrevious ? [secret, previousSecret] : [secret]
}
