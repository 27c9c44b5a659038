import { keyList } from '../../src/accounts/queries.ts'
import { startApp, type Answer } from '../support/app.ts'
import type { Fixture } from '../support/fixture.ts'

export const fixture: Fixture = {
  record: {
    idName: 'keyId',
    create: async (client) => (await client.post('/account/keys', { label: 'Another' })).body.id,
    missingCode: 'api_key_not_found'
  },
  list: {
    definition: keyList,
    insertRows: ({ from, account, time }) => `INSERT INTO api_keys (id, account_id, prefix, hash, created_at)
      SELECT i, ${account}, 'p', 'hash' || i, ${time} ${from}`
  },
  changes: {
    deleteAccount: async () => ({ read: '/account', method: 'DELETE', path: '/account', bodies: [undefined] }),
    revokeApiKey: async (ada) => {
      const path = `/account/keys/${(await ada.post('/account/keys', {})).body.id}`
      return { read: path, method: 'DELETE', path, bodies: [undefined] }
    }
  },
  operations: {
    'post /accounts': ['createAccount', 'accounts', 201, 'signup_closed'],
    'get /account': ['getAccount', 'accounts', 200],
    'delete /account': ['deleteAccount', 'accounts', 204],
    'get /account/keys': ['listApiKeys', 'accounts', 200],
    'post /account/keys': ['createApiKey', 'accounts', 201, 'api_key_limit_reached'],
    'get /account/keys/{keyId}': ['getApiKey', 'accounts', 200, 'api_key_not_found'],
    'delete /account/keys/{keyId}': ['revokeApiKey', 'accounts', 204, 'api_key_not_found', 'last_api_key']
  },
  keyedWrites: {
    revokeApiKey: {
      prepare: async (ada) => ['DELETE', `/account/keys/${(await ada.post('/account/keys', {})).body.id}`],
      shows: '/account/keys?sort=-id&limit=1'
    }
  },
  secretWrites: {
    createAccount: async () => ['POST', '/accounts', { name: 'A' }],
    createApiKey: async () => ['POST', '/account/keys', {}]
  },
  errors: {
    signup_closed: {
      status: 403,
      raise: async ({ t, config }) => {
        const { nobody } = await startApp(t, { DATABASE_URL: config.DATABASE_URL, SIGNUP: 'closed' })
        return await nobody.post('/accounts', { name: 'A store' })
      }
    },
    api_key_not_found: { status: 404, raise: async (_app, client) => await client.delete('/account/keys/4711') },
    api_key_limit_reached: {
      status: 409,
      raise: async (_app, client) => {
        const add = async (): Promise<Answer> => await client.post('/account/keys', {})
        await Promise.all(Array.from({ length: 99 }, add))
        return await add()
      }
    },
    last_api_key: {
      status: 409,
      raise: async (_app, client) =>
        await client.delete(`/account/keys/${(await client.get('/account/keys')).body[0].id}`)
    }
  }
}
