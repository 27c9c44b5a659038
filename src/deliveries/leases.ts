import type { Dialect } from '../database/dialect.ts'
import type { Command } from '../database/group-commit/command.ts'
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

interface Extension {
  account: number
  webhookId: number
  id: number
  lease: string
  /** The real time in ms at which the lease expires. */
  until: number
}

/** Extends the leases of deliveries that a worker sends later than it planned. */
export const extendLease: Command<Extension, undefined> = {
  name: 'extendLease',
  needs: needsWebhook,
  async runAll ({ dialect, execute }, inputs) {
    await execute(`
      UPDATE deliveries SET next_try_at = ${dialect.toTime('i.until')}
      FROM ${dialect.jsonRows('i', { id: 'bigint', lease: 'text', until: 'text' })}
      WHERE deliveries.id = i.id AND ${hasLease('i.lease')}`,
    inputs.map(({ id, lease, until }) => ({ id, lease, until: new Date(until).toISOString() })))
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
