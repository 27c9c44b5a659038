import type { Command, Outcome } from '../database/command.ts'
import { DELIVERY_LIFETIME_MS } from '../database/deliveries.ts'
import type { Query, Read } from '../database/read.ts'
import type { Session } from '../database/session.ts'
import { eventJson } from '../events/store.ts'
import type { Step } from '../messages/rules.ts'
import { followMessages } from '../messages/store.ts'
import type { WebhookAttempt } from './schemas.ts'

/** What there is to deliver. */
export interface Due {
  /** Newest message that no webhook is asked about; 0 when there is none. */
  messages: number
  /** By webhook, when something is to be done for it, in ms; now or earlier when it is due. */
  webhooks: Array<{ id: number, at: number }>
}

/** The first waiting delivery of a webhook, by the index of what waits. */
const first = (webhook: string, column: string): string =>
  `SELECT d.${column} FROM deliveries d WHERE d.state = 'waiting' AND d.webhook_id ${webhook} ORDER BY d.webhook_id, d.next_try_at, d.event_id LIMIT 1`

/** Skips through the index from webhook to webhook, however much waits for each. */
const dueQuery: Query<object, { messages: bigint | null, webhooks: string | null }> = {
  name: 'due deliveries',
  sql: (dialect) => `
    SELECT i.ord,
      (SELECT m.position FROM messages m WHERE m.status = 'queued' AND m.waiting = 0 ORDER BY m.position DESC LIMIT 1) AS messages,
      (WITH RECURSIVE walk(webhook) AS (
        SELECT (${first('> 0', 'webhook_id')})
        UNION ALL
        SELECT (${first('> walk.webhook', 'webhook_id')}) FROM walk WHERE walk.webhook IS NOT NULL
      )
      SELECT ${dialect.join(`
        CASE WHEN w.id IS NULL OR (w.gone AND f.event_id <> 0) THEN walk.webhook || ' '
          WHEN w.enabled OR f.event_id = 0 THEN walk.webhook || ' ' || ${dialect.time('f.next_try_at')}
          ELSE walk.webhook || ' ' || ${dialect.time('f.give_up_at')} END`, 'walk.webhook')}
      FROM walk
      JOIN deliveries f ON f.id = (${first('= walk.webhook', 'id')})
      LEFT JOIN webhooks w ON w.id = walk.webhook) AS webhooks
    FROM ${dialect.inputs('i', { ord: 'bigint' })}`
}

export async function findDue (read: Read): Promise<Due> {
  const row = await read(dueQuery, {})
  const webhooks = (row?.webhooks ?? '').split(',').filter((text) => text !== '').map((text) => {
    const [id, at = ''] = text.split(' ')
    return { id: Number(id), at: at === '' ? 0 : Date.parse(at) }
  })
  return { messages: Number(row?.messages ?? 0), webhooks }
}

/** A delivery that a worker has taken, with all it needs to be sent. */
export interface Taken {
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
export const LEASE_MS = 45_000

/** What is given up or dropped in one transaction at most. */
const STEP_SIZE = 500

export interface TakeResult {
  taken: Taken[]
  /** There may be more to do for this webhook at once. */
  more: boolean
  /** Another worker is at it. */
  busy: boolean
}

/**
 * Takes due deliveries of webhooks, in the order in which they are to be started, and none while another
 * worker has some: so 8 at a time are 8 altogether. Gives up, or drops, what is not to be sent.
 */
export const takeDeliveries: Command<TakeInput, TakeResult> = {
  name: 'takeDeliveries',
  rows: ({ webhookId }) => ({ webhooks: [webhookId] }),
  async run (session, inputs) {
    const webhooks = await loadTargets(session, inputs)
    const outcomes: Array<{ record: TakeResult }> = []
    const steps: Array<{ position: number, step: Step }> = []
    for (const input of inputs) {
      const webhook = webhooks.get(input.webhookId)
      const { ended, step } = await endDeliveries(session, input, webhook)
      for (const { message } of ended) if (message !== null) steps.push({ position: message, step })
      const taken = webhook === undefined ? [] : await take(session, input, webhook)
      for (const { message } of taken) if (message !== null) steps.push({ position: message, step: 'tried' })
      const busy = taken.length === 0 && await isBusy(session, input)
      outcomes.push({ record: { taken, more: taken.length === input.want || ended.length === STEP_SIZE, busy } })
    }
    await loadBodies(session, outcomes.flatMap(({ record: { taken } }) => taken))
    const events = await followMessages(session, steps)
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

async function loadTargets ({ dialect, query }: Session, inputs: TakeInput[]): Promise<Map<number, Target>> {
  const rows = await query<Target>(`
    SELECT w.id, w.url, w.enabled, w.gone, w.secret, w.previous_secret AS "previousSecret", ${dialect.time('w.previous_until')} AS "previousUntil"
    FROM webhooks w WHERE w.id IN (SELECT i."webhookId" FROM ${dialect.inputs('i', { webhookId: 'bigint' })})`, inputs)
  return new Map(rows.map((row) => [row.id, row]))
}

/** Of a webhook that is deleted, all; of one that answered 410, all that nobody has; of one switched off, what is a day old. */
async function endDeliveries ({ dialect, query, now }: Session, { webhookId: webhook }: TakeInput, target: Target | undefined): Promise<{ ended: Array<{ message: number | null }>, step: Step }> {
  if (target !== undefined && Boolean(target.enabled)) return { ended: [], step: 'givenUp' }
  const which = target === undefined ? '' : target.gone ? 'AND d.event_id <> 0 AND (d.leased_by IS NULL OR d.next_try_at <= n.now)' : 'AND d.event_id <> 0 AND d.give_up_at <= n.now AND (d.leased_by IS NULL OR d.next_try_at <= n.now)'
  const chosen = `
    WITH n AS (SELECT i.webhook, ${dialect.toTime('i.now')} AS now FROM ${dialect.inputs('i', { webhook: 'bigint', now: 'text' })})`
  const ids = `
    SELECT d.id FROM deliveries d, n WHERE d.state = 'waiting' AND d.webhook_id = n.webhook ${which} ORDER BY d.next_try_at LIMIT ${STEP_SIZE}`
  const ended = await query<{ message: number | null }>(target === undefined
    ? `${chosen} DELETE FROM deliveries WHERE id IN (${ids}) RETURNING message_position AS message`
    : `${chosen} UPDATE deliveries SET state = ${dialect.toEnum("'failed'", 'delivery_state')}, leased_by = NULL, settled_at = (SELECT n.now FROM n)
      WHERE id IN (${ids}) RETURNING message_position AS message`, [{ webhook, now }])
  return { ended, step: target === undefined ? 'dropped' : 'givenUp' }
}

async function take ({ dialect, query, now }: Session, { webhookId, worker, want }: TakeInput, target: Target): Promise<Taken[]> {
  const leasedUntil = Date.parse(now) + LEASE_MS
  const input = {
    webhook: webhookId,
    worker,
    want,
    now,
    until: new Date(leasedUntil).toISOString(),
    giveUp: new Date(Date.parse(now) + DELIVERY_LIFETIME_MS).toISOString()
  }
  const rows = await query<Omit<Taken, 'giveUpAt'> & { giveUpAt: string }>(`
    WITH i AS (
      SELECT i.webhook, i.worker, i.want, ${dialect.toTime('i.now')} AS now, ${dialect.toTime('i.until')} AS until, ${dialect.toTime('i."giveUp"')} AS give_up
      FROM ${dialect.inputs('i', { webhook: 'bigint', worker: 'text', want: 'bigint', now: 'text', until: 'text', giveUp: 'text' })}
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
      ORDER BY d.next_try_at, d.event_id LIMIT (SELECT i.want FROM i) ${dialect.forUpdateOfFree})
    RETURNING id, account_id AS account, webhook_id AS webhook, event_id AS event, attempts, message_position AS message, ${dialect.time('give_up_at')} AS "giveUpAt"`, [input])
  const { url, secret, previousSecret, previousUntil } = target
  const secrets = previousSecret !== null && previousUntil !== null && previousUntil > now ? [secret, previousSecret] : [secret]
  return rows
    .map((row) => ({ ...row, giveUpAt: Date.parse(row.giveUpAt), url, secrets, leasedUntil, body: row.event === 0 ? testBody(row, now) : undefined }))
    .sort((a, b) => a.event - b.event)
}

async function isBusy ({ dialect, query, now }: Session, { webhookId: webhook, worker }: TakeInput): Promise<boolean> {
  const rows = await query<object>(`
    SELECT i.webhook FROM ${dialect.inputs('i', { webhook: 'bigint', worker: 'text', now: 'text' })} WHERE EXISTS (
      SELECT 1 FROM deliveries o WHERE o.webhook_id = i.webhook AND o.leased_by IS NOT NULL AND o.leased_by <> i.worker AND o.next_try_at > ${dialect.toTime('i.now')})`,
  [{ webhook, worker, now }])
  return rows.length > 0
}

/** A test has no number of its own. */
function testBody ({ webhook }: { webhook: number }, timestamp: string): string {
  return JSON.stringify({ id: 0, type: 'webhook.test', timestamp, data: { webhookId: webhook } })
}

async function loadBodies ({ dialect, query }: Session, taken: Taken[]): Promise<void> {
  const wanted = taken.filter(({ event }) => event !== 0)
  if (wanted.length === 0) return
  const rows = await query<{ account: number, event: number, body: string }>(`
    SELECT e.account_id AS account, e.id AS event, ${eventJson(dialect)} AS body
    FROM ${dialect.inputs('i', { account: 'bigint', event: 'bigint' })} JOIN events e ON e.account_id = i.account AND e.id = i.event`,
  wanted.map(({ account, event }) => ({ account, event })))
  const bodies = new Map(rows.map(({ account, event, body }) => [`${account} ${event}`, body]))
  for (const delivery of wanted) delivery.body = bodies.get(`${delivery.account} ${delivery.event}`)
}

/** What became of a delivery that a worker had taken. */
export interface Settlement {
  id: number
  webhookId: number
  worker: string
  message: number | null
  /** The address that was called. */
  url: string
  /** `released` when it was not sent, or not to the end: it counts for nothing. */
  result: 'accepted' | 'again' | 'givenUp' | 'gone' | 'released'
  attempt?: WebhookAttempt
}

/** Attempts shown with a webhook. */
const SHOWN = 20

/** Notes what became of deliveries; of one that another worker has meanwhile taken, nothing. */
export const settleDeliveries: Command<Settlement, undefined> = {
  name: 'settleDeliveries',
  rows: ({ webhookId }) => ({ webhooks: [webhookId] }),
  async run (session, inputs) {
    const { dialect, query, now } = session
    const settled = new Set((await query<{ id: number }>(`
      UPDATE deliveries SET state = ${dialect.toEnum('i.state', 'delivery_state')}, leased_by = NULL, attempts = deliveries.attempts - i.untried,
        next_try_at = ${dialect.toTime('i.at')}, settled_at = ${dialect.toTime('i."settledAt"')}
      FROM ${dialect.inputs('i', { id: 'bigint', worker: 'text', state: 'text', untried: 'bigint', at: 'text', settledAt: 'text' })}
      WHERE deliveries.id = i.id AND deliveries.leased_by = i.worker
      RETURNING deliveries.id`, inputs.map((input) => rowOf(input, now)))).map(({ id }) => id))
    const mine = inputs.filter(({ id }) => settled.has(id))
    await noteAttempts(session, mine)
    const steps = mine.flatMap(({ message, result }): Array<{ position: number, step: Step }> => {
      if (message === null || result === 'again' || result === 'released') return []
      return [{ position: message, step: result === 'accepted' ? 'accepted' : 'givenUp' }]
    })
    const events = await followMessages(session, steps)
    return inputs.map((_input, i): Outcome<undefined> => ({ record: undefined, events: i === 0 ? events : [] }))
  }
}

function rowOf ({ id, worker, result, attempt }: Settlement, now: string): object {
  const waits = result === 'again' || result === 'released'
  return {
    id,
    worker,
    state: waits ? 'waiting' : result === 'accepted' ? 'delivered' : 'failed',
    untried: result === 'released' ? 1 : 0,
    at: attempt?.nextTryAt ?? now,
    settledAt: waits ? null : now
  }
}

/** The webhooks show their attempts, and one that answered 410 is switched off, unless it moved meanwhile. */
async function noteAttempts ({ dialect, query, execute }: Session, settled: Settlement[]): Promise<void> {
  const tried = settled.filter(({ attempt }) => attempt !== undefined)
  if (tried.length === 0) return
  const rows = await query<{ id: number, url: string, attempts: string, version: number }>(`
    SELECT w.id, w.url, w.attempts, w.version FROM webhooks w
    WHERE w.id IN (SELECT i.id FROM ${dialect.inputs('i', { id: 'bigint' })})`, tried.map(({ webhookId }) => ({ id: webhookId })))
  const noted = rows.map(({ id, url, attempts, version }) => {
    const own = tried.filter(({ webhookId }) => webhookId === id)
    const gone = own.some((settlement) => settlement.result === 'gone' && settlement.url === url)
    const shown = [...own.map(({ attempt }) => attempt!).reverse(), ...JSON.parse(attempts) as WebhookAttempt[]].slice(0, SHOWN)
    return { id, gone, attempts: JSON.stringify(shown), version: version + 1 }
  })
  await execute(`
    UPDATE webhooks SET attempts = i.attempts, version = i.version, gone = webhooks.gone OR i.gone, enabled = webhooks.enabled AND NOT i.gone
    FROM ${dialect.inputs('i', { id: 'bigint', gone: 'boolean', attempts: 'text', version: 'bigint' })}
    WHERE webhooks.id = i.id`, noted)
}

/** How long it can be seen what became of a delivery, in ms. */
const KEPT_MS = 60 * 60 * 1000

/** Removes some of the deliveries that were settled a while ago; `true` when there may be more. */
export const forgetDeliveries: Command<object, boolean> = {
  name: 'forgetDeliveries',
  async run ({ dialect, query, now }, inputs) {
    const before = new Date(Date.parse(now) - KEPT_MS).toISOString()
    const gone = await query<object>(`
      DELETE FROM deliveries WHERE id IN (
        SELECT d.id FROM deliveries d
        WHERE d.settled_at IS NOT NULL AND d.settled_at <= (SELECT ${dialect.toTime('i.before')} FROM ${dialect.inputs('i', { before: 'text' })})
        LIMIT ${STEP_SIZE} ${dialect.forUpdateOfFree})
      RETURNING id`, [{ before }])
    return inputs.map(() => ({ record: gone.length === STEP_SIZE }))
  }
}
