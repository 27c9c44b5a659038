import { timeText } from '../database/account-clocks.ts'
import type { Dialect } from '../database/dialect.ts'
import type { Command } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { HEAD_OF_QUEUE, needsWebhook } from './enqueue.ts'

/** Number of leases that this process has named. */
let leases = 0

/**
 * Returns the name of a new lease. It names more than the worker: a worker stores a result again if it does not know
 * whether it is stored, and may have a later lease of the same delivery by then.
 */
export function newLease (worker: string): string {
  return `${worker} ${++leases}`
}

/**
 * Returns the due time of a delivery that was leased, as SQL: it keeps its place among those that are due. Leases of
 * versions that did not store it are first.
 */
export function dueBeforeLease (dialect: Dialect): string {
  return `coalesce(deliveries.due_at, ${dialect.toTime(`'${HEAD_OF_QUEUE}'`)})`
}

/**
 * Returns an SQL condition: whether a delivery has this lease. After an ANALYZE, SQLite would otherwise read all leased
 * deliveries for each id.
 */
export function hasLease (lease: string): string {
  return `coalesce(deliveries.leased_by, '') = ${lease}`
}

/** Returns an SQL condition: whether the lease of a leased delivery is one of another worker. */
export function isLeasedElsewhere (deliveries: string, worker: string): string {
  return `${deliveries}.leased_by NOT LIKE ${worker} || ' %'`
}

/**
 * Moves the ends of the leases of an account's deliveries when its clock is moved ahead. A lease is a time of the
 * account's clock, and it must not expire while its worker still sends.
 */
export async function shiftLeases (
  { dialect, query, execute }: Transaction, account: number, seconds: number
): Promise<void> {
  const ofAccount = `IN (SELECT i.account FROM ${dialect.jsonRows('i', { account: 'bigint' })})`
  // The row of a webhook is locked for its deliveries, as in every other transaction.
  const webhooks = await query<{ id: number }>(
    `SELECT w.id FROM webhooks w WHERE w.account_id ${ofAccount} ORDER BY w.id ${dialect.forUpdate}`, [{ account }])
  if (webhooks.length === 0) return
  const leased = await query<{ id: number, until: string }>(`
    SELECT d.id, ${dialect.time('d.next_try_at')} AS until
    FROM ${dialect.jsonRows('i', { id: 'bigint' })} JOIN deliveries d ON d.webhook_id = i.id AND d.leased_by IS NOT NULL`,
  webhooks.map(({ id }) => ({ id })))
  await execute(`
    UPDATE deliveries SET next_try_at = ${dialect.toTime('i.until')}
    FROM ${dialect.jsonRows('i', { id: 'bigint', until: 'text' })} WHERE deliveries.id = i.id`,
  leased.map(({ id, until }) => ({ id, until: timeText(Date.parse(until) + seconds * 1000) })))
}

interface Extension { account: number, webhookId: number, id: number, lease: string, until: number }

/** Extends the leases of deliveries that a worker sends later than it planned. */
export const extendLease: Command<Extension, undefined> = {
  name: 'extendLease',
  needs: needsWebhook,
  async runAll ({ dialect, execute, clockOffset }, inputs) {
    await execute(`
      UPDATE deliveries SET next_try_at = ${dialect.toTime('i.until')}
      FROM ${dialect.jsonRows('i', { id: 'bigint', lease: 'text', until: 'text' })}
      WHERE deliveries.id = i.id AND ${hasLease('i.lease')}`,
    inputs.map(({ account, id, lease, until }) =>
      ({ id, lease, until: timeText(until + clockOffset(account)) })))
    return inputs.map(() => ({ record: undefined }))
  }
}

/** Makes a delivery that waits due, before all others of its webhook. */
export const expediteDelivery: Command<{ account: number, webhookId: number, id: number }, undefined> = {
  name: 'expediteDelivery',
  needs: needsWebhook,
  async runAll ({ dialect, execute }, inputs) {
    await execute(`
      UPDATE deliveries SET next_try_at = ${dialect.toTime(`'${HEAD_OF_QUEUE}'`)}
      WHERE state = 'waiting' AND leased_by IS NULL
        AND id IN (SELECT i.id FROM ${dialect.jsonRows('i', { id: 'bigint' })})`, inputs.map(({ id }) => ({ id })))
    return inputs.map(() => ({ record: undefined, changes: { deliveries: [] } }))
  }
}
