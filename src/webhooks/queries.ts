import { boolean, integer, json, jsonObject, text, time } from '../database/sql/json-object.ts'
import type { ListDefinition } from '../database/sql/keyset-pagination.ts'
import { findRecord, listRecords } from '../database/sql/record-queries.ts'

const members = {
  id: integer('w.id'),
  url: text('w.url'),
  events: json('w.events'),
  enabled: boolean('w.enabled'),
  createdAt: time('w.created_at')
}

export const webhookList: ListDefinition = {
  name: 'webhooks',
  from: 'webhooks w',
  record: (dialect) => jsonObject(dialect, members),
  filters: {},
  indexes: [{ name: 'webhooks_account_id_id_idx', columns: ['w.account_id'], position: 'w.id' }]
}

export const findWebhook = findRecord({ from: 'webhooks w', members, id: 'w.id' })
export const listWebhooks = listRecords(webhookList)
