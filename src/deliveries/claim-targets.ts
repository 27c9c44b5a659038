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
  url: string
  enabled: boolean | number
  /** The receiver answered 410, or failed for long. */
  gone: boolean | number
  secret: string
  previousSecret: string | null
  previousUntil: string | null
}

/** @returns the webhooks that are not deleted, and whose account is not, by id */
export async function loadTargets (
  { dialect, query, lockedAccounts }: Transaction, inputs: Array<{ webhookId: number }>
): Promise<Map<number, Target>> {
  const rows = await query<Target>(`
    SELECT w.id, w.account_id AS account, w.url, w.enabled, w.gone, w.secret,
      w.previous_secret AS "previousSecret", ${dialect.time('w.previous_until')} AS "previousUntil"
    FROM webhooks w WHERE w.id IN (SELECT i."webhookId" FROM ${dialect.jsonRows('i', { webhookId: 'bigint' })})`,
  inputs.map(({ webhookId }) => ({ webhookId })))
  return new Map(rows.filter(({ account }) => lockedAccounts.has(account)).map((row) => [row.id, row]))
}

/** @param target `undefined` if the webhook is deleted */
export function isEnabled (target: Target | undefined): boolean {
  return target !== undefined && Boolean(target.enabled)
}

/** Returns the secrets that sign an event. */
export function secretsOf ({ secret, previousSecret, previousUntil }: Target, now: string): string[] {
  const hasPrevious = previousSecret !== null && previousUntil !== null && previousUntil > now
  return hasPrevious ? [secret, previousSecret] : [secret]
}
