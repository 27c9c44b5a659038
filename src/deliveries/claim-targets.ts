import type { Transaction } from '../database/group-commit/transaction.ts'
import { webhooks, type WebhookRow } from '../generated/tables.ts'

export interface ClaimInput {
  webhookId: number
  account: number
  worker: string
  /** Limits the deliveries that are claimed. */
  limit: number
  /** Duration of the lease; `LEASE_MS` by default. */
  leaseMs?: number | undefined
}

/** A webhook as its deliveries see it. */
export type Target = Readonly<WebhookRow>

/** @returns the webhooks that are not deleted, and whose account is not, by id */
export function targetsOf (
  tx: Transaction, inputs: ReadonlyArray<{ account: number, webhookId: number }>
): Map<number, Target> {
  return new Map(inputs.flatMap(({ account, webhookId }) => {
    const target = tx.rows(account).get(webhooks, webhookId)
    return target === undefined ? [] : [[webhookId, target]]
  }))
}

/** @param target `undefined` if the webhook is deleted */
export function isEnabled (target: Target | undefined): boolean {
  return target?.enabled === true
}

/** Returns the secrets that sign an event. */
export function secretsOf ({ secret, previousSecret, previousUntil }: Target, now: string): string[] {
  const hasPrevious = previousSecret !== null && previousUntil !== null && previousUntil >= now
  return hasPrevious ? [secret, previousSecret] : [secret]
}
