import type { Command } from '../database/group-commit/command.ts'
import { HEAD_OF_QUEUE, DELIVERY_LIFETIME_MS } from './enqueue.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import { eventJson } from '../events/queries.ts'
import type { DeliveryOutcome } from '../messages/rules.ts'
import { updateMessageStatuses } from '../messages/delivery-status.ts'

/** A delivery that a worker has taken, with all it needs to be sent. */
export interface ClaimedDelivery {
  id: number
  account: number
  webhook: number
  event: number
  attempts: number
  giveUpAt: number
  message: number | null
  /** The event as JSON; `undefined` when it is no longer held. */
  body: string | undefined
  url: string
  secrets: string[]
  /** From then on it is anybody's. */
  leasedUntil: number
}

export interface TakeInput {
  webhookId: number
  worker: string
  /** How many at most. */
  want: number
}

/** How long a worker may keep what it took, in ms: longer than a call waits for its turn and then takes. */
const LEASE_MS = 45_000

/** What is given up or dropped in one transaction at most. */
const STEP_SIZE = 500

export interface TakeResult {
  taken: ClaimedDelivery[]
  /** There may be more to do for this webhook at once. */
  more: boolean
  /** Another worker is at it. */
  busy: boolean
}

/**
 * Takes due deliveries of webhooks, in the order in which they are to be started, and none while another
 * worker has some: so 8 at a time are 8 altogether. Gives up, or drops, what is not to be sent.
 */
export const claimDeliveries: Command<TakeInput, TakeResult> = {
  name: 'takeDeliveries',
  rows: ({ webhookId }) => ({ webhooks: [webhookId] }),
  async run (tx, inputs) {
    const webhooks = await loadTargets(tx, inputs)
    const outcomes: Array<{ record: TakeResult }> = []
    const steps: Array<{ position: number, outcome: DeliveryOutcome }> = []
    for (const input of inputs) {
      const webhook = webhooks.get(input.webhookId)
      const { ended, step } = await endDeliveries(tx, input, webhook)
      for (const { message } of ended) if (message !== null) steps.push({ position: message, outcome: step })
      await reclaim(tx, input)
      const taken = webhook === undefined ? [] : await take(tx, input, webhook)
      for (const { message } of taken) if (message !== null) steps.push({ position: message, outcome: 'attempted' })
      const busy = taken.length === 0 && await isBusy(tx, input)
      outcomes.push({ record: { taken, more: taken.length === input.want || ended.length === STEP_SIZE, busy } })
    }
    await loadBodies(tx, outcomes.flatMap(({ record: { taken } }) => taken))
    const events = await updateMessageStatuses(tx, steps)
    return outcomes.map((outcome, i) => i === 0 ? { ...outcome, events } : outcome)
  }
}

interface Target {
  id: number
  url: string
  enabled: boolean | number
  gone: boolean | number
  secret: string
  previousSecret: string | null
  previousUntil: string | null
}

async function loadTargets ({ dialect, query }: Transaction, inputs: TakeInput[]): Promise<Map<number, Target>> {
  const rows = await query<Target>(`
    SELECT w.id, w.url, w.enabled, w.gone, w.secret, w.previous_secret AS "previousSecret", ${dialect.time('w.previous_until')} AS "previousUntil"
    FROM webhooks w WHERE w.id IN (SELECT i."webhookId" FROM ${dialect.jsonRows('i', { webhookId: 'bigint' })})`, inputs)
  return new Map(rows.map((row) => [row.id, row]))
}

/** Of a webhook that is deleted, all; of one that answered 410, all that nobody has; of one switched off, what is a day old. */
async function endDeliveries ({ dialect, query, now }: Transaction, { webhookId: webhook }: TakeInput, target: Target | undefined): Promise<{ ended: Array<{ message: number | null }>, step: DeliveryOutcome }> {
  if (target !== undefined && Boolean(target.enabled)) return { ended: [], step: 'failed' }
  const which = target === undefined ? '' : target.gone ? 'AND d.event_id <> 0 AND (d.leased_by IS NULL OR d.next_try_at <= n.now)' : 'AND d.event_id <> 0 AND d.give_up_at <= n.now AND (d.leased_by IS NULL OR d.next_try_at <= n.now)'
  const chosen = `
    WITH n AS (SELECT i.webhook, ${dialect.toTime('i.now')} AS now FROM ${dialect.jsonRows('i', { webhook: 'bigint', now: 'text' })})`
  const ids = `
    SELECT d.id FROM deliveries d, n WHERE d.state = 'waiting' AND d.webhook_id = n.webhook ${which} ORDER BY d.next_try_at LIMIT ${STEP_SIZE}`
  const ended = await query<{ message: number | null }>(target === undefined
    ? `${chosen} DELETE FROM deliveries WHERE id IN (${ids}) RETURNING message_position AS message`
    : `${chosen} UPDATE deliveries SET state = ${dialect.toEnum("'failed'", 'delivery_state')}, leased_by = NULL, settled_at = (SELECT n.now FROM n)
      WHERE id IN (${ids}) RETURNING message_position AS message`, [{ webhook, now }])
  return { ended, step: target === undefined ? 'dropped' : 'failed' }
}

/** What a worker had taken when it died counts for nothing and goes before newer events, as does what a living one gives back. */
async function reclaim ({ dialect, execute, now }: Transaction, { webhookId: webhook }: TakeInput): Promise<void> {
  await execute(`
    UPDATE deliveries SET leased_by = NULL, attempts = attempts - 1, next_try_at = ${dialect.toTime('i.first')}
    FROM ${dialect.jsonRows('i', { webhook: 'bigint', now: 'text', first: 'text' })}
    WHERE webhook_id = i.webhook AND leased_by IS NOT NULL AND next_try_at <= ${dialect.toTime('i.now')}`, [{ webhook, now, first: HEAD_OF_QUEUE }])
}

async function take ({ dialect, query, now }: Transaction, { webhookId, worker, want }: TakeInput, target: Target): Promise<ClaimedDelivery[]> {
  const leasedUntil = Date.parse(now) + LEASE_MS
  const input = {
    webhook: webhookId,
    worker,
    want,
    now,
    until: new Date(leasedUntil).toISOString(),
    giveUp: new Date(Date.parse(now) + DELIVERY_LIFETIME_MS).toISOString()
  }
  const rows = await query<Omit<ClaimedDelivery, 'giveUpAt'> & { giveUpAt: string }>(`
    WITH i AS (
      SELECT i.webhook, i.worker, i.want, ${dialect.toTime('i.now')} AS now, ${dialect.toTime('i.until')} AS until, ${dialect.toTime('i."giveUp"')} AS give_up
      FROM ${dialect.jsonRows('i', { webhook: 'bigint', worker: 'text', want: 'bigint', now: 'text', until: 'text', giveUp: 'text' })}
    )
    UPDATE deliveries SET
      leased_by = (SELECT i.worker FROM i),
      next_try_at = (SELECT i.until FROM i),
      give_up_at = CASE WHEN attempts = 0 AND event_id <> 0 THEN (SELECT i.give_up FROM i) ELSE give_up_at END,
      attempts = attempts + 1
    WHERE id IN (
      SELECT d.id FROM deliveries d
      WHERE d.state = 'waiting' AND d.webhook_id = (SELECT i.webhook FROM i) AND d.next_try_at <= (SELECT i.now FROM i) ${target.enabled ? '' : 'AND d.event_id = 0'}
        AND NOT EXISTS (
          SELECT 1 FROM deliveries o WHERE o.webhook_id = (SELECT i.webhook FROM i) AND o.leased_by IS NOT NULL
            AND o.leased_by <> (SELECT i.worker FROM i) AND o.next_try_at > (SELECT i.now FROM i))
      ORDER BY d.next_try_at, d.event_id LIMIT (SELECT i.want FROM i) ${dialect.forUpdateSkipLocked})
    RETURNING id, account_id AS account, webhook_id AS webhook, event_id AS event, attempts, message_position AS message, ${dialect.time('give_up_at')} AS "giveUpAt"`, [input])
  const { url, secret, previousSecret, previousUntil } = target
  const secrets = previousSecret !== null && previousUntil !== null && previousUntil > now ? [secret, previousSecret] : [secret]
  return rows
    .map((row) => ({ ...row, giveUpAt: Date.parse(row.giveUpAt), url, secrets, leasedUntil, body: row.event === 0 ? testBody(row, now) : undefined }))
    .sort((a, b) => a.event - b.event)
}

async function isBusy ({ dialect, query, now }: Transaction, { webhookId: webhook, worker }: TakeInput): Promise<boolean> {
  const rows = await query<object>(`
    SELECT i.webhook FROM ${dialect.jsonRows('i', { webhook: 'bigint', worker: 'text', now: 'text' })} WHERE EXISTS (
      SELECT 1 FROM deliveries o WHERE o.webhook_id = i.webhook AND o.leased_by IS NOT NULL AND o.leased_by <> i.worker AND o.next_try_at > ${dialect.toTime('i.now')})`,
  [{ webhook, worker, now }])
  return rows.length > 0
}

/** A test has no number of its own. */
function testBody ({ webhook }: { webhook: number }, timestamp: string): string {
  return JSON.stringify({ id: 0, type: 'webhook.test', timestamp, data: { webhookId: webhook } })
}

async function loadBodies ({ dialect, query }: Transaction, taken: ClaimedDelivery[]): Promise<void> {
  const wanted = taken.filter(({ event }) => event !== 0)
  if (wanted.length === 0) return
  const rows = await query<{ account: number, event: number, body: string }>(`
    SELECT e.account_id AS account, e.id AS event, ${eventJson(dialect)} AS body
    FROM ${dialect.jsonRows('i', { account: 'bigint', event: 'bigint' })} JOIN events e ON e.account_id = i.account AND e.id = i.event`,
  wanted.map(({ account, event }) => ({ account, event })))
  const bodies = new Map(rows.map(({ account, event, body }) => [`${account} ${event}`, body]))
  for (const delivery of wanted) delivery.body = bodies.get(`${delivery.account} ${delivery.event}`)
}
