import { HEAD_OF_QUEUE } from '../../src/deliveries/enqueue.ts'
import { createWebhook, deleteWebhook, rotateSecret, updateWebhook } from '../../src/webhooks/commands.ts'
import { decisionsOf, NEW_ID, NOW, refusals, type Rows } from '../support/decide.ts'

const URL = 'https://example.com/'
const OTHER_URL = 'https://example.com/other'
const FAILING = { failures: 3, failingSince: '2026-11-20T10:00:00.000Z' }
const RECORD = { id: 4, url: URL, events: ['pet.created' as const], enabled: true, createdAt: NOW }
const webhookWith = (fields: NonNullable<Rows['webhooks']>[number] = {}): Rows =>
  ({ webhooks: [{ ...RECORD, events: '["pet.created"]', secret: 'whsec_old', ...fields }] })
const some = (count: number): Rows => ({ webhooks: Array.from({ length: count }, (_, i) => ({ id: 100 + i })) })

const webhook = { url: URL, events: RECORD.events, enabled: true }
const ref = { webhookId: 4, conditions: {} }
const change = { ...ref, patch: { url: OTHER_URL } }
const rotation = { ...ref, secret: 'whsec_new' }
const changes = { webhooks: [4] }

export const decisions = [
  decisionsOf(createWebhook, {
    'the last webhook of an account': {
      rows: some(19),
      input: { webhook, secret: 'whsec_new' },
      outcome: {
        record: { ...RECORD, id: NEW_ID, secret: 'whsec_new' },
        etag: '"1"',
        saved: { webhooks: { [NEW_ID]: { url: URL, events: '["pet.created"]', secret: 'whsec_new', createdAt: NOW } } }
      }
    },
    'a webhook that is not enabled': {
      input: { webhook: { ...webhook, enabled: false }, secret: 'whsec_new' },
      outcome: {
        record: { ...RECORD, id: NEW_ID, enabled: false, secret: 'whsec_new' },
        etag: '"1"',
        saved: {
          webhooks: {
            [NEW_ID]: { url: URL, events: '["pet.created"]', enabled: false, secret: 'whsec_new', createdAt: NOW }
          }
        }
      }
    },
    'one too many': { rows: some(20), input: { webhook, secret: 'whsec_new' }, outcome: 'WEBHOOK_LIMIT_REACHED' }
  }),
  decisionsOf(updateWebhook, {
    ...refusals(change, webhookWith(), 'WEBHOOK_NOT_FOUND'),
    'another address of a webhook that fails': {
      rows: webhookWith(FAILING),
      input: { ...change, conditions: { ifMatch: ['"1"'] } },
      outcome: {
        record: { ...RECORD, url: OTHER_URL },
        etag: '"2"',
        changes,
        saved: { webhooks: { 4: { url: OTHER_URL, failures: 0, failingSince: null, version: 2 } } }
      }
    },
    'other events of a webhook that fails': {
      rows: webhookWith(FAILING),
      input: { ...ref, patch: { events: ['pet.deleted'] } },
      outcome: {
        record: { ...RECORD, events: ['pet.deleted'] },
        etag: '"2"',
        changes,
        saved: { webhooks: { 4: { events: '["pet.deleted"]', version: 2 } } }
      }
    },
    'a webhook that was gone is enabled again': {
      rows: webhookWith({ ...FAILING, enabled: false, gone: true }),
      input: { ...ref, patch: { enabled: true } },
      outcome: {
        record: RECORD,
        etag: '"2"',
        changes,
        saved: { webhooks: { 4: { enabled: true, gone: false, failures: 0, failingSince: null, version: 2 } } }
      }
    },
    'another address of a webhook that was gone': {
      rows: webhookWith({ enabled: false, gone: true }),
      input: change,
      outcome: {
        record: { ...RECORD, url: OTHER_URL, enabled: false },
        etag: '"2"',
        changes,
        saved: { webhooks: { 4: { url: OTHER_URL, version: 2 } } }
      }
    },
    'what it has': {
      rows: webhookWith(FAILING), input: { ...ref, patch: webhook }, outcome: { record: RECORD, etag: '"1"' }
    },
    'an empty patch': {
      rows: webhookWith(FAILING), input: { ...ref, patch: {} }, outcome: { record: RECORD, etag: '"1"' }
    }
  }),
  decisionsOf(deleteWebhook, {
    ...refusals(ref, webhookWith(), 'WEBHOOK_NOT_FOUND'),
    'a webhook': {
      rows: webhookWith(),
      input: { ...ref, conditions: { ifMatch: ['"1"'] } },
      outcome: {
        changes,
        saved: {
          webhooks: { 4: null },
          deliveries: { [NEW_ID]: { webhookId: 4, eventId: 0, nextTryAt: HEAD_OF_QUEUE, giveUpAt: NOW } }
        }
      }
    }
  }),
  decisionsOf(rotateSecret, {
    ...refusals(rotation, webhookWith(), 'WEBHOOK_NOT_FOUND'),
    'a second rotation': {
      rows: webhookWith({ previousSecret: 'whsec_older', previousUntil: NOW }),
      input: { ...rotation, conditions: { ifMatch: ['"1"'] } },
      outcome: {
        record: { ...RECORD, secret: 'whsec_new' },
        etag: '"2"',
        changes,
        saved: {
          webhooks: {
            4: {
              secret: 'whsec_new', previousSecret: 'whsec_old', previousUntil: '2026-11-22T10:00:00.000Z', version: 2
            }
          }
        }
      }
    }
  })
]
