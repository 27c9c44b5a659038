import { randomBytes } from 'node:crypto'
import { countRows } from '../accounts/quota.ts'
import { timeText } from '../database/account-clocks.ts'
import { etagOf } from '../database/entity-tag.ts'
import type { Command, CommandResult, RowLock } from '../database/group-commit/command.ts'
import { inSequence, type Transaction } from '../database/group-commit/transaction.ts'
import type { TransactionClient } from '../database/prisma-client.ts'
import { HEAD_OF_QUEUE } from '../deliveries/enqueue.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { WebhookLimitReached, WebhookNotFound } from './errors.ts'
import { webhookTable } from './queries.ts'
import type { NewWebhook, Webhook, TestDelivery, WebhookUpdate, WebhookWithSecret } from './schemas.ts'

/** Maximum number of webhooks of an account. */
const MAX_WEBHOOKS = 20

/** How long the secret before the last rotation signs as well: 24 hours. */
const SECRET_OVERLAP_MS = 24 * 60 * 60 * 1000

export const createWebhook: Command<{ account: number, webhook: Required<NewWebhook> }, WebhookWithSecret> = {
  name: 'createWebhook',
  creates: webhookTable,
  runsAlone: 'with its kind',
  async run (tx, inputs) {
    const counts = await countRows(tx, webhookTable, inputs)
    const ids = await tx.allocateIds(webhookTable, inputs.length)
    const rows: object[] = []
    const results = inputs.map(({ account, webhook: { url, events, enabled } }): CommandResult<WebhookWithSecret> => {
      const count = counts.get(account) ?? 0
      if (count >= MAX_WEBHOOKS) return new WebhookLimitReached(MAX_WEBHOOKS)
      counts.set(account, count + 1)
      const now = tx.now(account)
      const secret = createSecret()
      const id = ids[rows.length]!
      rows.push({ id, account_id: account, url, events: JSON.stringify(events), enabled, secret, created_at: now })
      return { record: { id, url, events, enabled, createdAt: now, secret }, etag: etagOf(1) }
    })
    tx.insert(webhookTable, rows)
    // The events of this group look for subscribers, and a statement does not see what others in it write.
    await tx.flush()
    return results
  }
}

interface WebhookRef { account: number, webhookId: number, conditions: Conditions }

const locks = ({ webhookId }: WebhookRef): RowLock[] => [{ table: webhookTable, ids: [webhookId], mode: 'update' }]

export const updateWebhook: Command<WebhookRef & { patch: WebhookUpdate }, Webhook> = {
  name: 'updateWebhook',
  locks,
  run: async (tx, inputs) => await forEachWebhook(tx, inputs, async (webhook, { patch }, prisma) => {
    const { id } = webhook
    const { url = webhook.url, enabled = webhook.enabled } = patch
    const events = patch.events === undefined ? webhook.events : JSON.stringify(patch.events)
    if (url === webhook.url && enabled === webhook.enabled && events === webhook.events) {
      return { record: webhookRecord(webhook), etag: etagOf(webhook.version) }
    }
    const changed = { url, enabled, events, gone: webhook.gone && !enabled, version: webhook.version + 1 }
    // Another address, or an owner who enables the webhook again, has a new start.
    const isFresh = url !== webhook.url || enabled !== webhook.enabled
    const streak = isFresh ? { failures: 0, failingSince: null } : {}
    await prisma.webhook.update({ where: { id }, data: { ...changed, ...streak } })
    const record = webhookRecord({ ...webhook, ...changed })
    return { record, etag: etagOf(changed.version), changes: { webhooks: [id] } }
  })
}

/** Deletes a webhook. A worker removes its deliveries, a step at a time: there may be a day's worth of them. */
export const deleteWebhook: Command<WebhookRef, undefined> = {
  name: 'deleteWebhook',
  locks,
  run: async (tx, inputs) => await forEachWebhook(tx, inputs, async ({ id }, _input, prisma) => {
    await prisma.webhook.delete({ where: { id } })
    return { record: undefined, changes: { webhooks: [id] } }
  })
}

export const rotateSecret: Command<WebhookRef, WebhookWithSecret> = {
  name: 'rotateWebhookSecret',
  locks,
  run: async (tx, inputs) => await forEachWebhook(tx, inputs, async (webhook, _input, prisma) => {
    const { id } = webhook
    const secret = createSecret()
    const version = webhook.version + 1
    const previousUntil = timeText(Date.parse(tx.now(webhook.account)) + SECRET_OVERLAP_MS)
    const data = { secret, previousSecret: webhook.secret, previousUntil, version }
    await prisma.webhook.update({ where: { id }, data })
    return { record: { ...webhookRecord(webhook), secret }, etag: etagOf(version), changes: { webhooks: [id] } }
  })
}

/** Enqueues a test ahead of all waiting deliveries, also for a webhook that is disabled. */
export const testWebhook: Command<WebhookRef, TestDelivery> = {
  name: 'testWebhook',
  locks,
  run: async (tx, inputs) => await forEachWebhook(tx, inputs, async ({ id, account }, _input, prisma) => {
    const giveUpAt = tx.now(account)
    const delivery = { accountId: account, webhookId: id, eventId: 0, nextTryAt: HEAD_OF_QUEUE, giveUpAt }
    await prisma.delivery.create({ data: delivery, select: { id: true } })
    return { record: { webhookId: id }, changes: { deliveries: [] } }
  })
}

interface LoadedWebhook {
  id: number
  account: number
  url: string
  /** A JSON array. */
  events: string
  enabled: boolean
  /** The receiver answered 410, or failed for long. */
  gone: boolean
  secret: string
  createdAt: Date
  version: number
}

type WebhookChange<Input, Record> = (
  webhook: LoadedWebhook, input: Input, prisma: TransactionClient
) => Promise<CommandResult<Record>>

/**
 * Applies a change to the webhook of each input, each after the effects of those before it. A webhook that the account
 * does not have, or a failed precondition, refuses the input.
 */
async function forEachWebhook<Input extends WebhookRef, Record> (
  tx: Transaction, inputs: Input[], change: WebhookChange<Input, Record>
): Promise<Array<CommandResult<Record>>> {
  const prisma = await tx.prisma()
  return await inSequence(inputs, async (input) => {
    const { account, webhookId: id, conditions } = input
    const row = await prisma.webhook.findUnique({ where: { id, accountId: account } })
    if (row === null) return new WebhookNotFound()
    const webhook = { ...row, id, account, version: Number(row.version) }
    return checkPreconditions(conditions, etagOf(webhook.version)) ?? await change(webhook, input, prisma)
  })
}

function webhookRecord ({ id, url, events, enabled, createdAt }: LoadedWebhook): Webhook {
  return { id, url, events: JSON.parse(events) as Webhook['events'], enabled, createdAt: createdAt.toISOString() }
}

/** Creates a secret as the Standard Webhooks specification asks for: 24 to 64 random bytes in base64. */
function createSecret (): string {
  return `whsec_${randomBytes(24).toString('base64')}`
}
