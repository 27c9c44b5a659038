import { findRecord, listOf, listRecords } from '../database/sql/record-queries.ts'
import { webhooks } from '../generated/tables.ts'
import { WebhookSchema } from './schemas.ts'

export const webhookList = listOf(webhooks, WebhookSchema)
export const findWebhook = findRecord(webhooks, WebhookSchema)
export const listWebhooks = listRecords(webhookList)
