import { timeText } from '../database/account-clocks.ts'
import type { Command } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { eventJson } from '../events/queries.ts'
import { updateMessageStatuses, type MessageStep } from '../messages/delivery-status.ts'
import type { DeliveryOutcome } from '../messages/rules.ts'
import { DELIVERY_LIFETIME_MS, HEAD_OF_QUEUE, lockWebhook } from './enqueue.ts'

/** A delivery that a worker has claimed, with everything that its request needs. */
export interface ClaimedDelivery {
  id: number
  account: number
  webhook: number
  /** Number of the event; 0 for a test. */
  event: number
  /** Number of attempts, the next one included. */
  attempts: number
  /** Time in ms after which the delivery is not retried. */
  expiresAt: number
  /** Position of the message whose status depends on the delivery. */
  message: number | null
  /** The event as JSON; `undefined` when it is no longer stored. */
  body: string | undefined
  url: string
  secrets: string[]
  /** The worker that has claimed it. */
  worker: string
  /** Time in ms at which the lease expires: from then on any worker may claim the delivery. */
  leasedUntil: number
}

export interface ClaimInput {
  webhookId: number
  account: number
  worker: string
  /** Limits the deliveries that are claimed. */
  limit: number
  /** Duration of the lease; `LEASE_MS` by default. */
  leaseMs?: number | undefined
}

export interface ClaimResult {
  claimed: ClaimedDelivery[]
  /** There may be more to do for this webhook at once. */
  hasMore: boolean
  /** Another worker has deliveries of this webhook in flight. */
  isBusy: boolean
}

/** Time for which a worker owns what it claims: longer than a request waits for its turn and then takes. */
export const LEASE_MS = 45_000

/** Limits the deliveries that one transaction fails or deletes. */
const STEP_SIZE = 500

/**
 * Claims due deliveries of webhooks, in the order in which they are sent, and none while another worker has some in
 * flight: the limit of 8 requests at a time holds for all workers together. Ends deliveries that will not be sent.
 */
export const claimDeliveries: Command<ClaimInput, ClaimResult> = {
  name: 'claimDeliveries',
  locks: ({ webhookId }) => [lockWebhook(webhookId)],
  async run (tx, inputs) {
    const targets = await loadTargets(tx, inputs)
    const results: Array<{ record: ClaimResult }> = []
    const steps: MessageStep[] = []
    for (const input of inputs) {
      const target = targets.get(input.webhookId)
      const { ended, outcome } = await endUnsendable(tx, input, target)
      steps.push(...stepsOf(ended, outcome))
      await returnExpiredLeases(tx, input)
      const claimed = target === undefined ? [] : await claim(tx, input, target)
      const isBusy = claimed.length === 0 && await isLeasedElsewhere(tx, input)
      const hasMore = claimed.length === input.limit || ended.length === STEP_SIZE
      results.push({ record: { claimed, hasMore, isBusy } })
    }
    await loadBodies(tx, results.flatMap(({ record: { claimed } }) => claimed))
    const events = await updateMessageStatuses(tx, steps)
    return results.map((result, i) => i === 0 ? { ...result, events } : result)
  }
}

function stepsOf (deliveries: Array<{ message: number | null }>, outcome: DeliveryOutcome): MessageStep[] {
  return deliveries.flatMap(({ message }) => message === null ? [] : [{ position: message, outcome }])
}

interface Target {
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

async function loadTargets (
  { dialect, query, confirmClock }: Transaction, inputs: ClaimInput[]
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

interface EndedDeliveries {
  ended: Array<{ message: number | null }>
  outcome: DeliveryOutcome
}

/**
 * Ends some of the deliveries that will not be sent: those of a webhook that was deleted, or whose account was, the
 * unclaimed ones after a 410, and the expired ones of a webhook that is disabled. They come in the order of the index
 * of waiting deliveries, which a statement that names the webhook once walks without a sort.
 */
async function endUnsendable (tx: Transaction, { webhookId: webhook, account }: ClaimInput, target: Target | undefined):
Promise<EndedDeliveries> {
  const { dialect, query } = tx
  const now = tx.now(account)
  if (target !== undefined && Boolean(target.enabled)) return { ended: [], outcome: 'failed' }
  const at = '(SELECT n.now FROM n)'
  const isUnclaimed = `(d.leased_by IS NULL OR d.next_try_at <= ${at})`
  const condition = target === undefined
    ? ''
    : `AND d.event_id <> 0 ${target.gone ? '' : `AND d.give_up_at <= ${at}`} AND ${isUnclaimed}`
  const withNow = `
    WITH n AS (
      SELECT i.webhook, ${dialect.toTime('i.now')} AS now, ${dialect.toTime('i.settled')} AS settled
      FROM ${dialect.jsonRows('i', { webhook: 'bigint', now: 'text', settled: 'text' })})`
  const ids = `
    SELECT d.id FROM deliveries d
    WHERE d.state = 'waiting' AND d.webhook_id = (SELECT n.webhook FROM n) ${condition}
    ORDER BY d.next_try_at, d.event_id LIMIT ${STEP_SIZE}`
  const sql = target === undefined
    ? `${withNow} DELETE FROM deliveries WHERE id IN (${ids}) RETURNING message_position AS message`
    : `${withNow}
      UPDATE deliveries SET state = ${dialect.toEnum("'failed'", 'delivery_state')}, leased_by = NULL,
        settled_at = (SELECT n.settled FROM n)
      WHERE id IN (${ids}) RETURNING message_position AS message`
  const ended = await query<{ message: number | null }>(sql, [{ webhook, now, settled: tx.startedAt }])
  return { ended, outcome: target === undefined ? 'dropped' : 'failed' }
}

/**
 * Returns deliveries whose lease expired to the head of the queue, before newer events. The attempt of the worker that
 * died does not count, as with deliveries that a running worker returns.
 */
async function returnExpiredLeases (
  { dialect, execute, now }: Transaction, { webhookId, account }: ClaimInput
): Promise<void> {
  await execute(`
    UPDATE deliveries SET leased_by = NULL, attempts = attempts - 1, next_try_at = ${dialect.toTime('i.first')}
    FROM ${dialect.jsonRows('i', { webhook: 'bigint', now: 'text', first: 'text' })}
    WHERE webhook_id = i.webhook AND leased_by IS NOT NULL AND next_try_at <= ${dialect.toTime('i.now')}`,
  [{ webhook: webhookId, now: now(account), first: HEAD_OF_QUEUE }])
}

type ClaimedRow = Omit<ClaimedDelivery, 'expiresAt' | 'url' | 'secrets' | 'worker' | 'leasedUntil' | 'body'> & {
  expiresAt: string
}

async function claim (tx: Transaction, input: ClaimInput, target: Target): Promise<ClaimedDelivery[]> {
  const { query } = tx
  const { webhookId, account, worker, limit, leaseMs = LEASE_MS } = input
  const now = tx.now(account)
  const offset = tx.clockOffset(account)
  const leasedUntil = Date.parse(now) + leaseMs
  const rows = await query<ClaimedRow>(claimSql(tx, target), [{
    webhook: webhookId,
    worker,
    limit,
    now,
    until: timeText(leasedUntil),
    expiresAt: timeText(Date.parse(now) + DELIVERY_LIFETIME_MS)
  }])
  const { url, secret, previousSecret, previousUntil } = target
  const hasPrevious = previousSecret !== null && previousUntil !== null && previousUntil > now
  const secrets = hasPrevious ? [secret, previousSecret] : [secret]
  return rows
    .map((row) => ({
      ...row,
      // The worker waits in real time.
      expiresAt: Date.parse(row.expiresAt) - offset,
      url,
      secrets,
      worker,
      leasedUntil: leasedUntil - offset,
      body: row.event === 0 ? testBody(row, now) : undefined
    }))
    .sort((a, b) => a.event - b.event)
}

/** Returns the statement that claims: the lifetime of a delivery begins at its first attempt. */
function claimSql ({ dialect }: Transaction, { enabled }: Target): string {
  const columns = dialect.jsonRows('i', {
    webhook: 'bigint', worker: 'text', limit: 'bigint', now: 'text', until: 'text', expiresAt: 'text'
  })
  return `
    WITH i AS (
      SELECT i.webhook, i.worker, i."limit" AS max_count, ${dialect.toTime('i.now')} AS now,
        ${dialect.toTime('i.until')} AS until, ${dialect.toTime('i."expiresAt"')} AS expires_at
      FROM ${columns}
    )
    UPDATE deliveries SET
      leased_by = (SELECT i.worker FROM i),
      next_try_at = (SELECT i.until FROM i),
      give_up_at = CASE WHEN attempts = 0 AND event_id <> 0 THEN (SELECT i.expires_at FROM i) ELSE give_up_at END,
      attempts = attempts + 1
    WHERE id IN (
      SELECT d.id FROM deliveries d
      WHERE d.state = 'waiting' AND d.webhook_id = (SELECT i.webhook FROM i)
        AND d.next_try_at <= (SELECT i.now FROM i) ${enabled ? '' : 'AND d.event_id = 0'}
        AND NOT EXISTS (
          SELECT 1 FROM deliveries o WHERE o.webhook_id = (SELECT i.webhook FROM i) AND o.leased_by IS NOT NULL
            AND o.leased_by <> (SELECT i.worker FROM i) AND o.next_try_at > (SELECT i.now FROM i))
      ORDER BY d.next_try_at, d.event_id LIMIT (SELECT i.max_count FROM i) ${dialect.forUpdateSkipLocked})
    RETURNING id, account_id AS account, webhook_id AS webhook, event_id AS event, attempts,
      message_position AS message, ${dialect.time('give_up_at')} AS "expiresAt"`
}

async function isLeasedElsewhere (
  tx: Transaction, { webhookId: webhook, account, worker }: ClaimInput
): Promise<boolean> {
  const { dialect, query } = tx
  const now = tx.now(account)
  const rows = await query<object>(`
    SELECT i.webhook FROM ${dialect.jsonRows('i', { webhook: 'bigint', worker: 'text', now: 'text' })}
    WHERE EXISTS (
      SELECT 1 FROM deliveries o WHERE o.webhook_id = i.webhook AND o.leased_by IS NOT NULL
        AND o.leased_by <> i.worker AND o.next_try_at > ${dialect.toTime('i.now')})`,
  [{ webhook, worker, now }])
  return rows.length > 0
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
