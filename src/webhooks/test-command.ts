import type { Command } from '../database/group-commit/command.ts'
import { etagOf } from '../database/record.ts'
import { HEAD_OF_QUEUE, needsWebhook, testDelivery } from '../deliveries/enqueue.ts'
import { Overloaded } from '../errors.ts'
import { deliveries, webhooks } from '../generated/tables.ts'
import { checkPreconditions, type Conditions } from '../http/conditional-requests.ts'
import { WebhookNotFound } from './errors.ts'
import type { TestDelivery } from './schemas.ts'

/** Maximum number of tests that wait for a webhook: no event, and so no storage limit, bounds them. */
const MAX_WAITING_TESTS = 100

interface TestInput {
  account: number
  webhookId: number
  conditions: Conditions
}

/** Enqueues a test ahead of all waiting deliveries, also for a webhook that is disabled. */
export const testWebhook: Command<TestInput, TestDelivery> = {
  name: 'testWebhook',
  needs: needsWebhook,
  async run (tx, { account, webhookId, conditions }) {
    const webhook = tx.rows(account).get(webhooks, webhookId)
    if (webhook === undefined) return new WebhookNotFound()
    const failed = checkPreconditions(conditions, etagOf(webhook.version))
    if (failed !== undefined) return failed
    const { dialect } = tx
    const waiting = await tx.query<object>(`
      SELECT d.id FROM deliveries d
      WHERE d.state = 'waiting' AND d.event_id = 0 AND d.next_try_at <= ${dialect.toTime(`'${HEAD_OF_QUEUE}'`)}
        AND d.webhook_id = (SELECT i.webhook FROM ${dialect.jsonRows('i', { webhook: 'bigint' })})
      LIMIT ${MAX_WAITING_TESTS}`, [{ webhook: webhookId }])
    if (waiting.length === MAX_WAITING_TESTS) return new Overloaded()
    const [id] = await tx.allocateIds(deliveries, 1)
    await tx.insert(deliveries, [{ id: id!, accountId: account, ...testDelivery(webhookId, tx.now(account)) }])
    return { record: { webhookId }, changes: { deliveries: [] } }
  }
}
