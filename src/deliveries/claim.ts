import { oncePerDialect, type Dialect } from '../database/dialect.ts'
import { getOrAdd } from '../database/get-or-add.ts'
import type { Command } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { eventJson } from '../events/queries.ts'
import { isEnabled, targetsOf, secretsOf, type ClaimInput, type Target } from './claim-targets.ts'
import { DELIVERY_LIFETIME_MS, isInState, needsWebhook } from './enqueue.ts'
import { dueBeforeLease, isLeasedElsewhere, newLease } from './leases.ts'

/** A delivery that a worker has claimed, with everything that its request needs. */
export interface ClaimedDelivery {
  id: number
  account: number
  webhook: number
  /** Number of the event; 0 for a test. */
  event: number
  /** Number of attempts, the next one included. */
  attempts: number
  /** Real time in ms after which the delivery is not retried. */
  expiresAt: number
  /** Position of the message whose status depends on the delivery. */
  message: number | null
  /** The event as JSON; `undefined` when it is no longer stored. */
  body: string | undefined
  url: string
  secrets: string[]
  lease: string
  /** Real time in ms at which the lease expires: from then on any worker may claim the delivery. */
  leasedUntil: number
}

export interface ClaimResult {
  claimed: ClaimedDelivery[]
  /** There may be more to do for this webhook at once. */
  hasMore: boolean
  /** Which deliveries end: `all` of a webhook that is deleted or gone, the `expired` ones of a disabled one. */
  ending: 'none' | 'expired' | 'all'
  /** Another worker has deliveries of this webhook in flight. */
  isBusy: boolean
}

/** Time for which a worker owns what it claims: longer than a request waits for its turn and then takes. */
export const LEASE_MS = 45_000

/**
 * Claims due deliveries of webhooks, in the order in which they are sent, and none while another worker has some in
 * flight: the limit of 8 requests at a time holds for all workers together.
 */
export const claimDeliveries: Command<ClaimInput, ClaimResult> = {
  name: 'claimDeliveries',
  needs: needsWebhook,
  async runAll (tx, inputs) {
    const targets = targetsOf(tx, inputs)
    const results = new Map<ClaimInput, ClaimResult>()
    for (const batch of batchesOf(tx, inputs, targets)) {
      await returnExpiredLeases(tx, batch)
      const claimed = await claim(tx, batch, targets)
      const busy = await findLeasedElsewhere(tx, batch.filter(({ webhookId }) => !claimed.has(webhookId)))
      for (const input of batch) {
        const { webhookId, limit } = input
        const own = claimed.get(webhookId) ?? []
        const target = targets.get(webhookId)
        const ending = isEnabled(target) ? 'none' : target === undefined || target.gone ? 'all' : 'expired'
        results.set(input, { claimed: own, hasMore: own.length === limit, ending, isBusy: busy.has(webhookId) })
      }
    }
    await loadBodies(tx, [...results.values()].flatMap(({ claimed }) => claimed))
    return inputs.map((input) => ({ record: results.get(input)! }))
  }
}

/**
 * Splits the inputs for the statements. Where one statement serves many inputs, no two may be of one webhook, and the
 * webhooks are all enabled, or none of them.
 */
function batchesOf ({ dialect }: Transaction, inputs: ClaimInput[], targets: Map<number, Target>): ClaimInput[][] {
  if (!dialect.isServer) return inputs.map((input) => [input])
  const batches = new Map<string, ClaimInput[]>()
  const counts = new Map<number, number>()
  for (const input of inputs) {
    const { webhookId } = input
    const earlier = counts.get(webhookId) ?? 0
    counts.set(webhookId, earlier + 1)
    getOrAdd(batches, `${earlier} ${isEnabled(targets.get(webhookId))}`, (): ClaimInput[] => []).push(input)
  }
  return [...batches.values()]
}

/**
 * Returns deliveries whose lease expired to their place in the queue. The attempt of the worker that died does not
 * count, as with deliveries that a running worker returns.
 */
async function returnExpiredLeases ({ dialect, execute, startedAt }: Transaction, inputs: ClaimInput[]): Promise<void> {
  await execute(`
    UPDATE deliveries SET leased_by = NULL, attempts = attempts - 1, next_try_at = ${dueBeforeLease(dialect)}
    WHERE ${dialect.inSubquery('id', `
      SELECT d.id FROM ${dialect.jsonRows('i', { webhook: 'bigint', now: 'text' })} CROSS JOIN deliveries d
      WHERE d.webhook_id = i.webhook AND d.leased_by IS NOT NULL AND d.next_try_at <= ${dialect.toTime('i.now')}`)}`,
  inputs.map(({ webhookId: webhook }) => ({ webhook, now: startedAt })))
}

type ClaimedRow = Pick<ClaimedDelivery, 'id' | 'account' | 'webhook' | 'event' | 'attempts' | 'message'> & {
  expiresAt: string
  dueAt: string
}

/** @returns the claimed deliveries of each webhook that has any */
async function claim (
  tx: Transaction, inputs: ClaimInput[], targets: Map<number, Target>
): Promise<Map<number, ClaimedDelivery[]>> {
  const live = inputs.filter(({ webhookId }) => targets.has(webhookId))
  if (live.length === 0) return new Map()
  const began = Date.parse(tx.startedAt)
  const leasedUntil = ({ leaseMs = LEASE_MS }: ClaimInput): number => began + leaseMs
  const leases = new Map(live.map(({ webhookId, worker }) => [webhookId, newLease(worker)]))
  const { all, tests } = claimSql(tx.dialect)
  const sql = isEnabled(targets.get(live[0]!.webhookId)) ? all : tests
  const rows = await tx.query<ClaimedRow>(sql, live.map((input) => {
    const { webhookId: webhook, account, worker, limit } = input
    return {
      webhook,
      worker,
      lease: leases.get(webhook)!,
      limit,
      now: tx.now(account),
      began: tx.startedAt,
      until: new Date(leasedUntil(input)).toISOString(),
      expiresAt: tx.now(account, DELIVERY_LIFETIME_MS)
    }
  }))
  const inputOf = new Map(live.map((input) => [input.webhookId, input]))
  const claimed = new Map<number, ClaimedDelivery[]>()
  for (const { dueAt: _dueAt, ...row } of inDueOrder(rows)) {
    const { webhook } = row
    const input = inputOf.get(webhook)!
    const now = tx.now(input.account)
    const delivery: ClaimedDelivery = {
      ...row,
      // The worker waits in real time.
      expiresAt: Date.parse(row.expiresAt) - tx.clockOffset(input.account),
      leasedUntil: leasedUntil(input),
      url: targets.get(webhook)!.url,
      secrets: secretsOf(targets.get(webhook)!, now),
      lease: leases.get(webhook)!,
      body: row.event === 0 ? testBody(row, now) : undefined
    }
    getOrAdd(claimed, webhook, (): ClaimedDelivery[] => []).push(delivery)
  }
  return claimed
}

/**
 * Sorts deliveries by their due times, which are texts of one length. First attempts keep the order of their events: of
 * two groups that write at a time, the one that gets the earlier numbers can have begun some ms later.
 */
function inDueOrder (rows: ClaimedRow[]): ClaimedRow[] {
  const soonest = new Map<number, string>()
  for (const row of rows.sort((a, b) => b.event - a.event)) {
    if (row.attempts > 1) continue
    const later = soonest.get(row.webhook)
    if (later !== undefined && later < row.dueAt) row.dueAt = later
    soonest.set(row.webhook, row.dueAt)
  }
  return rows.sort((a, b) => a.dueAt === b.dueAt ? a.event - b.event : a.dueAt < b.dueAt ? -1 : 1)
}

/**
 * Returns the statements that claim all deliveries, or the tests alone, as for a webhook that is disabled: its others
 * may be many, and wait. The lifetime of a delivery begins at its first attempt.
 */
const claimSql = oncePerDialect((dialect) => ({
  all: claimOf(dialect, "d.state = 'waiting'", 'd.next_try_at, d.event_id'),
  // By the index of deliveries that were not accepted: in that of waiting ones, a walk would pass all others.
  tests: claimOf(dialect, `${isInState(dialect, 'waiting')} AND d.event_id = 0`, 'd.id')
}))

function claimOf (dialect: Dialect, condition: string, order: string): string {
  const columns = dialect.jsonRows('i', {
    webhook: 'bigint',
    worker: 'text',
    lease: 'text',
    limit: 'bigint',
    now: 'text',
    began: 'text',
    until: 'text',
    expiresAt: 'text'
  })
  const { isServer } = dialect
  // Without LATERAL there is one input, and SQLite would read all deliveries to join them with it.
  const of = (column: string): string => isServer ? `i.${column}` : `(SELECT i.${column} FROM i)`
  const value = (column: string): string => isServer ? `due.${column}` : of(column)
  const due = `
    SELECT d.id AS due_id FROM deliveries d
    WHERE ${condition} AND d.webhook_id = ${of('webhook')} AND d.next_try_at <= ${of('now')} AND d.leased_by IS NULL
      AND NOT EXISTS (
        SELECT 1 FROM deliveries o WHERE o.webhook_id = ${of('webhook')} AND o.leased_by IS NOT NULL
          AND ${isLeasedElsewhere('o', of('worker'))} AND o.next_try_at > ${of('began')})
    ORDER BY ${order} LIMIT ${of('max_count')} ${dialect.locking('FOR UPDATE SKIP LOCKED')}`
  const whichAreDue = isServer
    ? `FROM (SELECT i.lease, i.until, i.expires_at, first.due_id FROM i CROSS JOIN LATERAL (${due}) AS first) AS due
      WHERE deliveries.id = due.due_id`
    : `WHERE id IN (${due})`
  return `
    WITH i AS (
      SELECT i.webhook, i.worker, i.lease, i."limit" AS max_count, ${dialect.toTime('i.now')} AS now,
        ${dialect.toTime('i.began')} AS began, ${dialect.toTime('i.until')} AS until, ${dialect.toTime('i."expiresAt"')} AS expires_at
      FROM ${columns}
    )
    UPDATE deliveries SET leased_by = ${value('lease')}, next_try_at = ${value('until')}, due_at = next_try_at,
      attempts = attempts + 1,
      give_up_at = CASE WHEN attempts = 0 AND event_id <> 0 THEN ${value('expires_at')} ELSE give_up_at END
    ${whichAreDue}
    RETURNING id, account_id AS account, webhook_id AS webhook, event_id AS event, attempts,
      message_position AS message, ${dialect.time('give_up_at')} AS "expiresAt", ${dialect.time('due_at')} AS "dueAt"`
}

/** Returns those of the webhooks of which another worker has deliveries in flight. */
async function findLeasedElsewhere (
  { dialect, query, startedAt }: Transaction, inputs: ClaimInput[]
): Promise<Set<number>> {
  if (inputs.length === 0) return new Set()
  const rows = await query<{ webhook: number }>(`
    SELECT i.webhook FROM ${dialect.jsonRows('i', { webhook: 'bigint', worker: 'text', now: 'text' })}
    WHERE EXISTS (
      SELECT 1 FROM deliveries o WHERE o.webhook_id = i.webhook AND o.leased_by IS NOT NULL
        AND ${isLeasedElsewhere('o', 'i.worker')} AND o.next_try_at > ${dialect.toTime('i.now')})`,
  inputs.map(({ webhookId: webhook, worker }) => ({ webhook, worker, now: startedAt })))
  return new Set(rows.map(({ webhook }) => webhook))
}

/** Returns the event of a test, which has no number of its own. */
function testBody ({ webhook }: { webhook: number }, timestamp: string): string {
  return JSON.stringify({ id: 0, type: 'webhook.test', timestamp, data: { webhookId: webhook } })
}

async function loadBodies ({ dialect, query }: Transaction, claimed: ClaimedDelivery[]): Promise<void> {
  const deliveries = claimed.filter(({ event }) => event !== 0)
  if (deliveries.length === 0) return
  const rows = await query<{ account: number, event: number, body: string }>(`
    SELECT e.account_id AS account, e.id AS event, ${eventJson(dialect)} AS body
    FROM ${dialect.jsonRows('i', { account: 'bigint', event: 'bigint' })}
    JOIN events e ON e.account_id = i.account AND e.id = i.event`,
  deliveries.map(({ account, event }) => ({ account, event })))
  const bodies = new Map(rows.map(({ account, event, body }) => [`${account} ${event}`, body]))
  for (const delivery of deliveries) delivery.body = bodies.get(`${delivery.account} ${delivery.event}`)
}
