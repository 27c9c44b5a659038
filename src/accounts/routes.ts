import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { sendChanged, sendCreated, sendFound, sendList } from '../http/record-routes.ts'
import { sendWriteResult, sendRecord } from '../http/responses.ts'
import { checkCollectionPreconditions, conditionsOf, STALE_EXAMPLE } from '../http/conditional-requests.ts'
import { ApiKeyLimitReached, ApiKeyNotFound, LastApiKey, SignupClosed } from './errors.ts'
import { writeContext } from '../http/idempotency.ts'
import { arrayOf, NoContent, ref } from '../http/common-schemas.ts'
import {
  AccountSchema, AccountWithKeySchema, ApiKeySchema, ApiKeyWithSecretSchema, KeyParams, KeyQuery, NewAccountSchema,
  NewApiKeySchema, type NewAccount
} from './schemas.ts'
import { createCredential } from './api-key.ts'
import { createAccount, createApiKey, deleteAccount, revokeApiKey } from './commands.ts'
import { findAccount, findApiKey, listKeys } from './queries.ts'
import { SignupPace } from './signup-pace.ts'

export interface SignupOptions {
  /** If true, clients without an API key may create accounts. */
  open: boolean
  /** The longest time that an account can exist, in seconds; 0 without a limit. */
  ttlSeconds: number
}

/** Maximum size of a body, which anybody may send: the longest name and email have 6 KB, each character escaped. */
const MAX_BODY_BYTES = 8_192

/** Registers the only operation that needs no API key. */
export const signupRoutes: FastifyPluginAsyncTypebox<SignupOptions> = async function signupRoutes (
  app, { open, ttlSeconds }
) {
  const pace = new SignupPace()
  app.post('/accounts', {
    bodyLimit: Math.min(app.initialConfig.bodyLimit!, MAX_BODY_BYTES),
    schema: {
      operationId: 'createAccount',
      tags: ['accounts'],
      summary: 'Open an account',
      description: 'An account is a store. Other accounts cannot see its records. The response contains the first ' +
        'API key of the account, which is shown only in this response. With `expiresIn`, the account is deleted ' +
        'after that time, as by `DELETE /account`.',
      security: [],
      body: ref(NewAccountSchema),
      response: { 201: ref(AccountWithKeySchema) }
    },
    config: { errors: [SignupClosed], secret: true, readBy: 'getAccount' },
    // Runs before body parsing: the service parses an unauthenticated body only if it can create an account.
    onRequest: async (request, reply) => {
      if (!open) throw new SignupClosed()
      await app.limits.signup(request, reply)
      await pace.admit()
    }
  }, async (request, reply) => {
    const rejection = checkCollectionPreconditions(conditionsOf(request))
    const account = { ...request.body, ...boundedExpiry(request.body, ttlSeconds) }
    const input = { account, credential: createCredential() }
    const created = await app.commit(createAccount, input, { account: null, rejection })
    return sendWriteResult(reply.header('cache-control', 'no-store'), 201, created, '/account')
  })
}

/** Returns when a new account expires: what the client asks for, but not later than all accounts. */
function boundedExpiry ({ expiresIn }: NewAccount, ttlSeconds: number): Pick<NewAccount, 'expiresIn'> {
  if (ttlSeconds === 0) return {}
  return { expiresIn: Math.min(expiresIn ?? Infinity, ttlSeconds) }
}

export const accountRoutes: FastifyPluginAsyncTypebox = async function accountRoutes (app) {
  app.get('/account', {
    schema: {
      operationId: 'getAccount',
      summary: 'Get your account',
      description: 'Returns the account that the API key belongs to.',
      response: { 200: ref(AccountSchema) }
    }
  }, async (request, reply) => sendRecord(request, reply, await findAccount(app.read, request.auth.account)))

  app.delete('/account', {
    schema: {
      operationId: 'deleteAccount',
      summary: 'Delete your account',
      description: 'Permanently deletes the account with all its records. Its API keys stop working at once, as if ' +
        'you revoked them.',
      response: { 204: NoContent }
    },
    config: { examples: { 'If-Match': STALE_EXAMPLE } }
  }, async (request, reply) => {
    const { auth: { account } } = request
    const input = { account, conditions: conditionsOf(request) }
    const deleted = await app.commit(deleteAccount, input, writeContext(request))
    return sendWriteResult(reply, 204, deleted)
  })

  app.get('/account/keys', {
    schema: {
      operationId: 'listApiKeys',
      summary: 'List API keys',
      description: 'Lists the API keys of the account by id, without their secrets, a page at a time.',
      querystring: KeyQuery,
      response: { 200: arrayOf(ApiKeySchema) }
    }
  }, async (request, reply) => await sendList(request, reply, listKeys))

  app.post('/account/keys', {
    schema: {
      operationId: 'createApiKey',
      summary: 'Create an API key',
      description: 'Creates another API key for the account, up to 100. Its secret is shown only in this response.',
      body: ref(NewApiKeySchema),
      response: { 201: ref(ApiKeyWithSecretSchema) }
    },
    config: { errors: [ApiKeyLimitReached], secret: true }
  }, async (request, reply) => {
    reply.header('cache-control', 'no-store')
    return await sendCreated(request, reply, createApiKey, { key: request.body, credential: createCredential() })
  })

  app.get('/account/keys/:keyId', {
    schema: {
      operationId: 'getApiKey',
      summary: 'Get an API key',
      description: 'Returns one API key, without its secret.',
      params: KeyParams,
      response: { 200: ref(ApiKeySchema) }
    },
    config: { errors: [ApiKeyNotFound] }
  }, async (request, reply) => await sendFound(request, reply, findApiKey, request.params.keyId, ApiKeyNotFound))

  app.delete('/account/keys/:keyId', {
    schema: {
      operationId: 'revokeApiKey',
      summary: 'Revoke an API key',
      description: 'The key stops working at once in the process that responds, and within 5 seconds in all others. ' +
        'You cannot revoke the last unexpired key that may write.',
      params: KeyParams,
      response: { 204: NoContent }
    },
    config: { errors: [ApiKeyNotFound, LastApiKey], examples: { 'If-Match': STALE_EXAMPLE } }
  }, async (request, reply) => await sendChanged(request, reply, revokeApiKey, request.params))
}
