import { createAccount, createApiKey, revokeApiKey } from '../../src/accounts/commands.ts'
import { decisionsOf, NEW_ID, NOW, refusals, type Rows } from '../support/decide.ts'

const credential = { apiKey: 'psk_abc_def', prefix: 'abc', hash: '01ef' }
const KEY = { prefix: 'abc', hash: '01ef', createdAt: NOW }
const some = (count: number): Rows => ({ apiKeys: Array.from({ length: count }, (_, i) => ({ id: 100 + i })) })

/** A key to revoke, and another one. */
const keysWith = (other: NonNullable<Rows['apiKeys']>[number]): Rows => ({ apiKeys: [{ id: 3 }, { id: 4, ...other }] })
const ref = { keyId: 3, conditions: {} }
const REVOKED = { changes: { apiKeys: [3] }, saved: { apiKeys: { 3: null } } }

export const decisions = [
  decisionsOf(createAccount, {
    'a name': {
      account: null,
      input: { account: { name: 'A store' }, credential },
      outcome: {
        record: { id: NEW_ID, name: 'A store', createdAt: NOW, apiKey: credential.apiKey },
        etag: '"1"',
        saved: {
          accounts: { [NEW_ID]: { name: 'A store', createdAt: NOW } },
          apiKeys: { [NEW_ID]: { accountId: NEW_ID, ...KEY } }
        }
      }
    },
    'an email address and a lifetime': {
      account: null,
      input: { account: { name: 'A store', email: 'ada@example.com', expiresIn: 3_600 }, credential },
      outcome: {
        record: {
          id: NEW_ID,
          name: 'A store',
          createdAt: NOW,
          apiKey: credential.apiKey,
          email: 'ada@example.com',
          expiresAt: '2026-11-21T11:00:00.000Z'
        },
        etag: '"1"',
        saved: {
          accounts: {
            [NEW_ID]: {
              name: 'A store', email: 'ada@example.com', createdAt: NOW, expiresAt: '2026-11-21T11:00:00.000Z'
            }
          },
          apiKeys: { [NEW_ID]: { accountId: NEW_ID, ...KEY } }
        }
      }
    }
  }),
  decisionsOf(createApiKey, {
    'the last key of an account': {
      rows: some(99),
      input: { key: {}, credential },
      outcome: {
        record: { id: NEW_ID, prefix: 'abc', readOnly: false, createdAt: NOW, apiKey: credential.apiKey },
        etag: '"1"',
        saved: { apiKeys: { [NEW_ID]: KEY } }
      }
    },
    'a key that ends, in another time zone': {
      input: { key: { label: 'CI', readOnly: true, expiresAt: '2027-01-01T12:00:00+02:00' }, credential },
      outcome: {
        record: {
          id: NEW_ID,
          prefix: 'abc',
          readOnly: true,
          createdAt: NOW,
          apiKey: credential.apiKey,
          label: 'CI',
          expiresAt: '2027-01-01T10:00:00.000Z'
        },
        etag: '"1"',
        saved: {
          apiKeys: { [NEW_ID]: { ...KEY, label: 'CI', readOnly: true, expiresAt: '2027-01-01T10:00:00.000Z' } }
        }
      }
    },
    'one too many': { rows: some(100), input: { key: {}, credential }, outcome: 'API_KEY_LIMIT_REACHED' }
  }),
  decisionsOf(revokeApiKey, {
    ...refusals(ref, keysWith({}), 'API_KEY_NOT_FOUND'),
    'a key beside another': {
      rows: keysWith({}), input: { ...ref, conditions: { ifMatch: ['"1"'] } }, outcome: REVOKED
    },
    'a key beside one that ends later': {
      rows: keysWith({ expiresAt: '2026-11-21T10:00:00.001Z' }), input: ref, outcome: REVOKED
    },
    'the last key': { rows: { apiKeys: [{ id: 3 }] }, input: ref, outcome: 'LAST_API_KEY' },
    'the last key that may write': { rows: keysWith({ readOnly: true }), input: ref, outcome: 'LAST_API_KEY' },
    'the last key that has not ended': { rows: keysWith({ expiresAt: NOW }), input: ref, outcome: 'LAST_API_KEY' }
  })
]
