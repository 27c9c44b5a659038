import { randomBytes } from 'node:crypto'
import { timeText } from '../database/account-clocks.ts'
import { etagOf, recordOf } from '../database/record.ts'
import type { AccountRows } from '../database/unit-of-work/account-rows.ts'
import { all, forUpdate, type Need, type Write } from '../database/unit-of-work/write.ts'
import { testDelivery } from '../deliveries/enqueue.ts'
import { apiKeys, deliveries, webhooks, type WebhookRow } from '../generated/tables.ts'
import { requireRow, type RecordRef } from '../http/record-routes.ts'
import { WebhookLimitReached, WebhookNotFound } from './errors.ts'
import {
  WebhookSchema, WebhookWithSecretSchema, type NewWebhook, type Webhook, type WebhookUpdate, type WebhookWithSecret
} from './schemas.ts'

/** Maximum number of webhooks of an account. */
const MAX_WEBHOOKS = 20

/** How long the secret before the last rotation signs as well: 24 hours. */
const SECRET_OVERLAP_MS = 24 * 60 * 60 * 1000

export interface NewWebhookInput {
  webhook: NewWebhook & Pick<Webhook, 'events'>
  /** A new `webhookSecret()`. */
  secret: string
}

export const createWebhook: Write<NewWebhookInput, WebhookWithSecret> = {
  name: 'createWebhook',
  // An account without webhooks has no row of theirs to lock, but it has API keys.
  needs: () => [all(apiKeys), all(webhooks)],
  creates: [webhooks],
  decide ({ webhook, secret }, rows) {
    if (rows.all(webhooks).length >= MAX_WEBHOOKS) throw new WebhookLimitReached(MAX_WEBHOOKS)
    const events = JSON.stringify(webhook.events)
    const row = rows.insert(webhooks, { ...webhook, events, secret, createdAt: rows.now })
    return { record: recordOf(WebhookWithSecretSchema, row), etag: etagOf(1) }
  }
}

type WebhookRef = RecordRef<'webhookId'>

const needs = ({ webhookId }: WebhookRef): Need[] => [forUpdate(webhooks, webhookId)]

export const updateWebhook: Write<WebhookRef & { patch: WebhookUpdate }, Webhook> = {
  name: 'updateWebhook',
  needs,
  decide ({ patch, ...ref }, rows) {
    const webhook = findWebhook(rows, ref)
    const { url = webhook.url, enabled = webhook.enabled } = patch
    const events = patch.events === undefined ? webhook.events : JSON.stringify(patch.events)
    // Another address, or an owner who enables the webhook again, has a new start.
    const isFresh = url !== webhook.url || enabled !== webhook.enabled
    const streak = isFresh ? { failures: 0, failingSince: null, gone: webhook.gone && !enabled } : {}
    const changed = rows.update(webhooks, webhook, { ...patch, events, ...streak })
    const result = { record: recordOf(WebhookSchema, changed), etag: etagOf(changed.version) }
    return changed === webhook ? result : { ...result, changes: { webhooks: [webhook.id] } }
  }
}

/**
 * Deletes a webhook. A worker removes its attempts and its deliveries, a step at a time: there may be a day's worth of
 * them. A further delivery makes sure that a worker finds the webhook.
 */
export const deleteWebhook: Write<WebhookRef, undefined> = {
  name: 'deleteWebhook',
  needs,
  creates: [deliveries],
  decide (ref, rows) {
    const webhook = findWebhook(rows, ref)
    rows.delete(webhooks, webhook)
    rows.insert(deliveries, testDelivery(webhook.id, rows.now))
    return { record: undefined, changes: { webhooks: [webhook.id] } }
  }
}

/** @param secret a new `webhookSecret()` */
export const rotateSecret: Write<WebhookRef & { secret: string }, WebhookWithSecret> = {
  name: 'rotateWebhookSecret',
  needs,
  decide ({ secret, ...ref }, rows) {
    const webhook = findWebhook(rows, ref)
    const previousUntil = timeText(Date.parse(rows.now) + SECRET_OVERLAP_MS)
    const changed = rows.update(webhooks, webhook, { secret, previousSecret: webhook.secret, previousUntil })
    const record = recordOf(WebhookWithSecretSchema, changed)
    return { record, etag: etagOf(changed.version), changes: { webhooks: [webhook.id] } }
  }
}

/** @throws the errors of an unknown webhook, and of failed preconditions */
function findWebhook (rows: AccountRows, { webhookId, conditions }: WebhookRef): Readonly<WebhookRow> {
  return requireRow(rows, webhooks, webhookId, WebhookNotFound, conditions)
}

/** Creates a secret as the Standard Webhooks specification asks for: 24 to 64 random bytes in base64. */
export function webhookSecret (): string {
  return `whsec_${randomBytes(24).toString('base64')}`
}
