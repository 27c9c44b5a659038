import { randomBytes } from 'node:crypto'
import { etagOf, checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { HEAD_OF_QUEUE } from '../deliveries/enqueue.ts'
import type { Command, CommandResult } from '../database/group-commit/command.ts'
import type { Dialect } from '../database/dialect.ts'
import type { Table } from '../database/sql/bulk-insert.ts'
import { boolean, integer, json, jsonObject, text, time, type SerializedRecord } from '../database/sql/json-object.ts'
import { pageQuery, type ListDefinition, type Page, type PageRequest } from '../database/sql/keyset-pagination.ts'
import type { Query, Read } from '../database/read-batching.ts'
import { distinct, type Transaction } from '../database/group-commit/transaction.ts'
import { WebhookLimitReached, WebhookNotFound } from '../errors.ts'
import { EVENT_TYPES } from '../events/schemas.ts'
import type { NewWebhook, Webhook, WebhookUpdate, WebhookWithSecret } from './schemas.ts'

/** Webhooks of one account at most. */
const LIMIT = 20

/** How long the secret before the last rotation signs as well, in ms. */
const OVERLAP_MS = 24 * 60 * 60 * 1000

const members = {
  id: integer('w.id'),
  url: text('w.url'),
  events: json('w.events'),
  enabled: boolean('w.enabled'),
  createdAt: time('w.created_at')
}

const webhookById: Query<{ account: number, id: number }, { version: bigint, record: string }> = {
  sql: (dialect) => `
    SELECT i.ord, w.version, ${jsonObject(dialect, { ...members, attempts: json('w.attempts') })} AS record
    FROM ${dialect.jsonRows('i', { ord: 'ordinality', account: 'bigint', id: 'bigint' })}
    JOIN webhooks w ON w.id = i.id AND w.account_id = i.account`
}

export const webhooks: ListDefinition = {
  name: 'webhooks',
  from: 'webhooks w',
  record: (dialect: Dialect) => jsonObject(dialect, members),
  filters: {},
  indexes: [{ name: 'webhooks_account_id_id_idx', columns: ['w.account_id'], position: 'w.id' }]
}

/** With its last attempts. */
export async function findWebhook (read: Read, account: number, id: number): Promise<SerializedRecord | undefined> {
  const row = await read(webhookById, { account, id })
  return row && { record: row.record, etag: etagOf(row.version) }
}

export async function listWebhooks (read: Read, account: number, page: PageRequest): Promise<Page> {
  return await read(...pageQuery(webhooks, page, account)) as Page
}

const table: Table = {
  name: 'webhooks',
  id: 'id',
  columns: { account_id: 'bigint', url: 'text', events: 'text', enabled: 'boolean', secret: 'text', created_at: 'time' }
}

export const createWebhook: Command<{ account: number, webhook: NewWebhook }, WebhookWithSecret> = {
  name: 'createWebhook',
  creates: table,
  async run ({ dialect, query, allocateIds, insert, flush, now }, inputs) {
    const input = dialect.jsonRows('i', { account: 'bigint' })
    const accounts = distinct(inputs.map(({ account }) => ({ account })))
    // The account's own row is locked last of all. Every account has a key, so its keys stand for it here.
    await query(`SELECT k.id FROM api_keys k WHERE k.account_id IN (SELECT i.account FROM ${input}) ORDER BY k.id ${dialect.forUpdate}`, accounts)
    const counts = new Map((await query<{ account: number, count: number }>(`
      SELECT i.account, (SELECT count(*) FROM webhooks w WHERE w.account_id = i.account) AS count FROM ${input}`, accounts))
      .map(({ account, count }) => [account, count]))

    const ids = await allocateIds(table, inputs.length)
    const rows: object[] = []
    const outcomes = inputs.map(({ account, webhook: { url, events = EVENT_TYPES, enabled = true } }): CommandResult<WebhookWithSecret> => {
      const count = counts.get(account) ?? 0
      if (count >= LIMIT) return new WebhookLimitReached(LIMIT)
      counts.set(account, count + 1)
      const secret = newSecret()
      const id = ids[rows.length]!
      rows.push({ id, account_id: account, url, events: JSON.stringify(events), enabled, secret, created_at: now })
      return { record: { id, url, events: [...events], enabled, createdAt: now, secret }, etag: etagOf(1) }
    })
    insert(table, rows)
    // The events of this group ask who hears them, and a statement does not see what others in it write.
    await flush()
    return outcomes
  }
}

interface Named { account: number, webhookId: number }
interface Conditional extends Named { conditions: Conditions }

const rows = ({ webhookId }: Named): { webhooks: number[] } => ({ webhooks: [webhookId] })

export const updateWebhook: Command<Conditional & { patch: WebhookUpdate }, Webhook> = {
  name: 'updateWebhook',
  rows,
  async run (tx, inputs) {
    const loaded = await loadWebhooks(tx, inputs)
    const changed = new Set<LoadedWebhook>()
    const outcomes = inputs.map(({ account, webhookId, patch, conditions }): CommandResult<Webhook> => {
      const webhook = loaded.get(webhookId)
      if (webhook?.account !== account) return new WebhookNotFound()
      const refused = checkPreconditions(conditions, etagOf(webhook.version))
      if (refused !== undefined) return refused
      const { url = webhook.url, enabled = webhook.enabled } = patch
      const events = patch.events === undefined ? webhook.events : JSON.stringify(patch.events)
      if (url !== webhook.url || enabled !== webhook.enabled || events !== webhook.events) {
        Object.assign(webhook, { url, enabled, events, gone: webhook.gone && !enabled, version: webhook.version + 1 })
        changed.add(webhook)
      }
      return { record: webhookRecord(webhook), etag: etagOf(webhook.version), ...(changed.has(webhook) && { changedWebhooks: [webhookId] }) }
    })
    const { dialect, execute } = tx
    await execute(`
      UPDATE webhooks SET url = i.url, events = i.events, enabled = i.enabled, gone = i.gone, version = i.version
      FROM ${dialect.jsonRows('i', { id: 'bigint', url: 'text', events: 'text', enabled: 'boolean', gone: 'boolean', version: 'bigint' })}
      WHERE webhooks.id = i.id`, [...changed])
    return outcomes
  }
}

/** Its deliveries are removed by the worker, a step at a time: there may be a day's worth of them. */
export const deleteWebhook: Command<Conditional, undefined> = {
  name: 'deleteWebhook',
  rows,
  async run (tx, inputs) {
    const loaded = await loadWebhooks(tx, inputs)
    const gone: Array<{ id: number }> = []
    const outcomes = inputs.map(({ account, webhookId, conditions }): CommandResult<undefined> => {
      const webhook = loaded.get(webhookId)
      if (webhook?.account !== account) return new WebhookNotFound()
      const refused = checkPreconditions(conditions, etagOf(webhook.version))
      if (refused !== undefined) return refused
      loaded.delete(webhookId)
      gone.push({ id: webhookId })
      return { record: undefined, changedWebhooks: [webhookId] }
    })
    await tx.execute(`DELETE FROM webhooks WHERE id IN (SELECT i.id FROM ${tx.dialect.jsonRows('i', { id: 'bigint' })})`, gone)
    return outcomes
  }
}

export const rotateSecret: Command<Named, WebhookWithSecret> = {
  name: 'rotateWebhookSecret',
  rows,
  async run (tx, inputs) {
    const loaded = await loadWebhooks(tx, inputs)
    const until = new Date(Date.parse(tx.now) + OVERLAP_MS).toISOString()
    const changed = new Set<LoadedWebhook>()
    const outcomes = inputs.map(({ account, webhookId }): CommandResult<WebhookWithSecret> => {
      const webhook = loaded.get(webhookId)
      if (webhook?.account !== account) return new WebhookNotFound()
      Object.assign(webhook, { previousSecret: webhook.secret, secret: newSecret(), version: webhook.version + 1 })
      changed.add(webhook)
      return { record: { ...webhookRecord(webhook), secret: webhook.secret }, etag: etagOf(webhook.version), changedWebhooks: [webhookId] }
    })
    const { dialect, execute } = tx
    await execute(`
      UPDATE webhooks SET secret = i.secret, previous_secret = i."previousSecret", previous_until = ${dialect.toTime('i.until')}, version = i.version
      FROM ${dialect.jsonRows('i', { id: 'bigint', secret: 'text', previousSecret: 'text', until: 'text', version: 'bigint' })}
      WHERE webhooks.id = i.id`, [...changed].map((webhook) => ({ ...webhook, until })))
    return outcomes
  }
}

/** A test goes before whatever waits, and also to a webhook that is switched off. */
export const testWebhook: Command<Named, undefined> = {
  name: 'testWebhook',
  rows,
  async run (tx, inputs) {
    const { dialect, execute, now } = tx
    const loaded = await loadWebhooks(tx, inputs)
    const queued: object[] = []
    const outcomes = inputs.map(({ account, webhookId }): CommandResult<undefined> => {
      if (loaded.get(webhookId)?.account !== account) return new WebhookNotFound()
      queued.push({ account, webhookId, at: HEAD_OF_QUEUE, now })
      return { record: undefined, wakes: true }
    })
    await execute(`
      INSERT INTO deliveries (account_id, webhook_id, event_id, next_try_at, give_up_at)
      SELECT i.account, i."webhookId", 0, ${dialect.toTime('i.at')}, ${dialect.toTime('i.now')}
      FROM ${dialect.jsonRows('i', { account: 'bigint', webhookId: 'bigint', at: 'text', now: 'text' })}`, queued)
    return outcomes
  }
}

interface LoadedWebhook {
  id: number
  account: number
  url: string
  /** The JSON array. */
  events: string
  enabled: boolean
  gone: boolean
  secret: string
  createdAt: string
  version: number
}

async function loadWebhooks ({ dialect, query }: Transaction, inputs: Named[]): Promise<Map<number, LoadedWebhook>> {
  const rows = await query<LoadedWebhook>(`
    SELECT w.id, w.account_id AS account, w.url, w.events, w.enabled, w.gone, w.secret, ${dialect.time('w.created_at')} AS "createdAt", w.version
    FROM ${dialect.jsonRows('i', { account: 'bigint', id: 'bigint' })}
    JOIN webhooks w ON w.id = i.id AND w.account_id = i.account`,
  distinct(inputs.map(({ account, webhookId }) => ({ account, id: webhookId }))))
  // SQLite's booleans are 0 and 1.
  return new Map(rows.map((row) => [row.id, { ...row, enabled: Boolean(row.enabled), gone: Boolean(row.gone) }]))
}

function webhookRecord ({ id, url, events, enabled, createdAt }: LoadedWebhook): Webhook {
  return { id, url, events: JSON.parse(events) as Webhook['events'], enabled, createdAt }
}

/** As the Standard Webhooks specification has it: 24 to 64 random bytes in base64. */
function newSecret (): string {
  return `whsec_${randomBytes(24).toString('base64')}`
}
