import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { pageRequest } from '../http/pagination.ts'
import { sendWriteResult, sendPage, sendRecord } from '../http/responses.ts'
import { conditionsOf } from '../http/conditional-requests.ts'
import { ApiKeyNotFound, LastApiKey, SignupClosed } from './errors.ts'
import { writeContext } from '../http/idempotency.ts'
import { NoContent, ref } from '../http/common-schemas.ts'
import {
  AccountSchema, AccountWithKeySchema, ApiKeySchema, ApiKeyWithSecretSchema, KeyParams, KeyQuery, NewAccountSchema, NewApiKeySchema
} from './schemas.ts'
import { createAccount, createApiKey, deleteAccount, revokeApiKey } from './commands.ts'
import { findAccount, listKeys } from './queries.ts'

export interface SignupOptions {
  /** Whether anybody may open an account. */
  open: boolean
}

/** The one operation without a key. */
export const signupRoutes: FastifyPluginAsyncTypebox<SignupOptions> = async function signupRoutes (app, { open }) {
  app.post('/accounts', {
    schema: {
      operationId: 'createAccount',
      tags: ['accounts'],
      summary: 'Open an account',
      description: 'An account is a store: whatever belongs to it is invisible to all others. The answer holds its first API key, which is shown this once.',
      security: [],
      body: ref(NewAccountSchema),
      response: { 201: ref(AccountWithKeySchema) }
    },
    config: { errors: [SignupClosed], secret: true, readBy: 'getAccount' },
    // Before the body: a stranger's is parsed only where it may lead to an account.
    onRequest: open ? app.limits.signup : async () => { throw new SignupClosed() }
  }, async (request, reply) => {
    const created = await app.commit(createAccount, { account: request.body }, { account: null })
    return sendWriteResult(reply.header('cache-control', 'no-store'), 201, created, '/account')
  })
}

export const accountRoutes: FastifyPluginAsyncTypebox = async function accountRoutes (app) {
  app.get('/account', {
    schema: {
      operationId: 'getAccount',
      tags: ['accounts'],
      summary: 'Get your account',
      description: 'The account that the key belongs to.',
      response: { 200: ref(AccountSchema) }
    }
  }, async (request, reply) => sendRecord(request, reply, await findAccount(app.read, request.auth.account)))

  app.delete('/account', {
    schema: {
      operationId: 'deleteAccount',
      tags: ['accounts'],
      summary: 'Delete your account',
      description: 'Erases the account and all it holds, for good. Its keys end.',
      response: { 204: NoContent }
    }
  }, async (request, reply) => {
    const { auth: { account } } = request
    const deleted = await app.commit(deleteAccount, { account, conditions: conditionsOf(request) }, writeContext(request))
    app.revokeCachedKeys({ account })
    return sendWriteResult(reply, 204, deleted)
  })

  app.get('/account/keys', {
    schema: {
      operationId: 'listApiKeys',
      tags: ['accounts'],
      summary: 'List API keys',
      description: 'The keys of the account by id, without their secrets, a page at a time.',
      querystring: KeyQuery,
      response: { 200: Type.Array(ref(ApiKeySchema)) }
    }
  }, async (request, reply) => {
    const { auth: { account }, query } = request
    return sendPage(request, reply, await listKeys(app.read, account, pageRequest(query)))
  })

  app.post('/account/keys', {
    schema: {
      operationId: 'createApiKey',
      tags: ['accounts'],
      summary: 'Make an API key',
      description: 'Another key for the account. Its secret is shown this once.',
      body: ref(NewApiKeySchema),
      response: { 201: ref(ApiKeyWithSecretSchema) }
    },
    config: { secret: true }
  }, async (request, reply) => {
    const { auth: { account }, body: key } = request
    const created = await app.commit(createApiKey, { account, key }, writeContext(request))
    return sendWriteResult(reply.header('cache-control', 'no-store'), 201, created)
  })

  app.delete('/account/keys/:keyId', {
    schema: {
      operationId: 'revokeApiKey',
      tags: ['accounts'],
      summary: 'Revoke an API key',
      description: 'The key stops working here at once, and everywhere within 5 seconds. The last unexpired key that may write stays.',
      params: KeyParams,
      response: { 204: NoContent }
    },
    config: { errors: [ApiKeyNotFound, LastApiKey] }
  }, async (request, reply) => {
    const { auth: { account }, params: { keyId } } = request
    const revoked = await app.commit(revokeApiKey, { account, keyId, conditions: conditionsOf(request) }, writeContext(request))
    app.revokeCachedKeys({ key: keyId })
    return sendWriteResult(reply, 204, revoked)
  })
}
