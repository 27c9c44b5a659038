import bearerAuth from '@fastify/bearer-auth'
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { LRUCache } from 'lru-cache'
import { markKeyUsed } from '../accounts/commands.ts'
import { findKey, hasExpiredAccount, type ApiKeyCredential } from '../accounts/queries.ts'
import { hashOf, isCredential, KEY_CACHE_TTL_MS, prefixOf } from '../accounts/api-key.ts'
import { ReadOnlyKey, Unauthorized } from '../errors.ts'
import { STRANGERS } from './admission.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The credential of the request; set on every request in the `authenticated` scope. */
    auth: ApiKeyCredential
  }
  interface FastifyInstance {
    /** Rejects writes with a read-only key; an `onRequest` hook. */
    requireWriteAccess: onRequestHookHandler
  }
}

/** Precision of the expiry. With lru-cache's default of 1 ms, a busy service sets a timer every millisecond. */
const CACHE_RESOLUTION_MS = 100

/** Maximum number of cached keys. Requests with further keys cost a query each. */
const CACHE_SIZE = 10_000

const HOUR_MS = 3_600_000

/** Adds bearer keys (RFC 6750): `verifyBearerAuth` and `requireWriteAccess`, the hooks of the `authenticated` scope. */
export const authentication = fp(async function authentication (app: FastifyInstance) {
  const cache = new LRUCache<string, ApiKeyCredential>({
    max: CACHE_SIZE,
    ttl: KEY_CACHE_TTL_MS,
    ttlResolution: CACHE_RESOLUTION_MS,
    // An old entry still tells whose request a look-up is.
    noDeleteOnStaleGet: true
  })
  // Ids are never reused, so entries need no removal. They also reject a key whose query began before its revocation.
  const revoked = new LRUCache<string, true>({ max: CACHE_SIZE })

  app.decorateRequest('auth', null as unknown as ApiKeyCredential)
  app.decorate('requireWriteAccess', requireWriteAccess)
  /** When another process last said that it revoked a key, by `performance.now()`. */
  let hintedAt = -Infinity
  // Called before the answer to the request. Other processes are notified, or notice within `KEY_CACHE_TTL_MS`.
  app.onChange(({ apiKeys = [], accounts = [] }, isHint) => {
    if (apiKeys.length + accounts.length === 0) return
    if (isHint) return forget(new Set(apiKeys), new Set(accounts))
    for (const id of apiKeys) revoked.set(`key ${id}`, true)
    for (const id of accounts) revoked.set(`account ${id}`, true)
  })

  /** Makes the next request with one of the keys look it up again. */
  function forget (keys: Set<number>, accounts: Set<number>): void {
    hintedAt = performance.now()
    for (const [hash, { key, account }] of cache.entries()) {
      if (keys.has(key) || accounts.has(account)) cache.delete(hash)
    }
  }

  await app.register(bearerAuth, {
    keys: new Set<string>(),
    addHook: false,
    // With this setting the name of the scheme is case-insensitive (RFC 9110 section 11.1).
    specCompliance: 'rfc6749',
    verifyErrorLogLevel: 'debug',
    auth (text: string, request: FastifyRequest) {
      const hash = hashOf(text)
      const credential = cache.get(hash)
      return credential === undefined ? findApiKey(text, hash, request) : admit(credential, request)
    }
  })

  async function findApiKey (text: string, hash: string, request: FastifyRequest): Promise<true> {
    // Otherwise, a busy account would wait behind all strangers each time that an entry is too old.
    await app.admission.admit(cache.peek(hash, { allowStale: true })?.account ?? STRANGERS)
    if (!isCredential(text)) {
      throw new Unauthorized('This is not an API key. Send the whole key, exactly as you received it')
    }
    request.keyPrefix = prefixOf(text)
    const start = performance.now()
    const credential = await findKey(app.read, hash)
    if (credential === undefined) {
      cache.delete(hash)
      throw new Unauthorized('This API key does not exist or was revoked. Use another API key')
    }
    // From the start of the query: a revocation since then may be one that the query did not see.
    if (hintedAt < start) cache.set(hash, credential, { start })
    return authorize(credential, request)
  }

  function admit (credential: ApiKeyCredential, request: FastifyRequest): true | Promise<true> {
    const admitted = app.admission.admit(credential.account)
    return admitted === undefined ? authorize(credential, request) : admitted.then(() => authorize(credential, request))
  }

  function authorize (credential: ApiKeyCredential, request: FastifyRequest): true {
    const { key, account, expiresAt } = credential
    request.keyPrefix = credential.prefix
    // The size comes first: usually no key was revoked, and the two strings would cost time in every request.
    if (revoked.size > 0 && (revoked.has(`key ${key}`) || revoked.has(`account ${account}`))) {
      throw new Unauthorized('This API key was revoked. Use another API key')
    }
    if (hasExpiredAccount(credential)) {
      throw new Unauthorized('The account of this API key has expired. Open another account')
    }
    const now = app.clocks.now(account)
    if (expiresAt !== undefined && now >= expiresAt) {
      throw new Unauthorized('This API key has expired. Use another API key')
    }
    recordLastUse(credential, now)
    request.auth = credential
    return true
  }

  /** Stores `lastUsedAt` rounded down to the hour: one write an hour for each key, for which no request waits. */
  function recordLastUse (credential: ApiKeyCredential, now: number): void {
    const hour = Math.floor(now / HOUR_MS) * HOUR_MS
    const { account, key, lastUsedAt } = credential
    if (lastUsedAt !== undefined && lastUsedAt >= hour) return
    credential.lastUsedAt = hour
    app.commit(markKeyUsed, { account, key, at: hour }, { account: null }).catch((error: unknown) => {
      app.log.warn({ err: error }, 'failed to record the last use of an API key')
    })
  }
}, { name: 'authentication', dependencies: ['admission', 'database', 'request-logging'] })

const requireWriteAccess: onRequestHookHandler = (request, _reply, done) => {
  done(request.auth.readOnly && writes(request) ? new ReadOnlyKey() : undefined)
}

function writes ({ method, routeOptions: { config } }: FastifyRequest): boolean {
  return method !== 'GET' && method !== 'HEAD' && config.readsOnly !== true
}

/** Sets the challenge of RFC 6750 section 3. It has an error code only if the request sent a bearer credential. */
export function setWwwAuthenticate (
  { headers }: FastifyRequest, reply: FastifyReply, error?: 'insufficient_scope'
): void {
  const bearer = /^bearer(\s|$)/i.test(headers.authorization ?? '')
  const reason = error ?? (bearer ? 'invalid_token' : undefined)
  reply.header('www-authenticate', `Bearer realm="petstore"${reason === undefined ? '' : `, error="${reason}"`}`)
}
