import bearerAuth from '@fastify/bearer-auth'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { LRUCache } from 'lru-cache'
import { findKey, markKeyUsed, type ApiKeyCredential } from '../accounts/commands.ts'
import { hashOf, isCredential } from '../accounts/api-key.ts'
import { ReadOnlyKey, Unauthorized } from '../errors.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who asks; set on every request inside the scope of key holders. */
    auth: ApiKeyCredential
  }
  interface FastifyInstance {
    /** Ends keys in this process at once; other processes notice within `CACHE_MS`. */
    revokeCachedKeys: (ended: { key: number } | { account: number }) => void
  }
}

/** How long a key is believed without a look: the contract ends a revoked key everywhere within 5 s. */
const CACHE_MS = 4_000

/** How exactly, in ms; for 1 ms, the default, a busy service would set a timer in each. */
const CACHE_EXACT_MS = 100

/** Keys remembered at once. More only means more look-ups. */
const CACHE_SIZE = 10_000

const HOUR_MS = 3_600_000

/** Bearer keys (RFC 6750): `app.verifyBearerAuth` for the scope of key holders. */
export const authentication = fp(async function authentication (app: FastifyInstance) {
  const holders = new LRUCache<string, ApiKeyCredential>({ max: CACHE_SIZE, ttl: CACHE_MS, ttlResolution: CACHE_EXACT_MS })
  // Ids are never used again, so what ended here stays ended, also for a look-up that began before.
  const ended = new LRUCache<string, true>({ max: CACHE_SIZE })

  app.decorateRequest('auth', null as unknown as ApiKeyCredential)

  app.decorate('revokeCachedKeys', (which) => {
    const [name, id] = Object.entries(which)[0] as ['key' | 'account', number]
    ended.set(`${name} ${id}`, true)
  })

  await app.register(bearerAuth, {
    keys: new Set<string>(),
    addHook: false,
    // The name that takes the scheme's word in any case.
    specCompliance: 'rfc6749',
    verifyErrorLogLevel: 'debug',
    auth (credential: string, request: FastifyRequest) {
      const hash = hashOf(credential)
      const holder = holders.get(hash)
      return holder === undefined ? findApiKey(credential, hash, request) : authorize(holder, request)
    }
  })

  async function findApiKey (credential: string, hash: string, request: FastifyRequest): Promise<true> {
    if (!isCredential(credential)) throw new Unauthorized('This is not an API key: it is misspelt or was cut off')
    const holder = await findKey(app.read, hash)
    if (holder === undefined) throw new Unauthorized('This API key does not exist or was revoked')
    holders.set(hash, holder)
    return authorize(holder, request)
  }

  function authorize (holder: ApiKeyCredential, request: FastifyRequest): true {
    // Mostly nothing ended, and two texts a request are made for nothing.
    if (ended.size > 0 && (ended.has(`key ${holder.key}`) || ended.has(`account ${holder.account}`))) throw new Unauthorized('This API key was revoked')
    const now = Date.now()
    if (holder.expiresAt !== undefined && now >= holder.expiresAt) throw new Unauthorized('This API key has expired')
    recordLastUse(holder, now)
    request.auth = holder
    return true
  }

  /** `lastUsedAt` is kept to the hour, so a key costs one write an hour, and nobody waits for it. */
  function recordLastUse (holder: ApiKeyCredential, now: number): void {
    const hour = Math.floor(now / HOUR_MS) * HOUR_MS
    if (holder.lastUsedAt !== undefined && holder.lastUsedAt >= hour) return
    holder.lastUsedAt = hour
    app.commit(markKeyUsed, { key: holder.key, at: hour }, { account: null }).catch((error: unknown) => {
      app.log.warn({ err: error }, 'could not note the use of an API key')
    })
  }
}, { name: 'authentication', dependencies: ['database'] })

/** A read-only key may ask, and nothing else. */
export function requireWriteAccess ({ auth, method }: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void {
  done(auth.readOnly && method !== 'GET' && method !== 'HEAD' ? new ReadOnlyKey() : undefined)
}

/** The challenge of RFC 6750 section 3: what was wrong is said only to who sent a bearer credential. */
export function setWwwAuthenticate ({ headers }: FastifyRequest, reply: FastifyReply, error?: 'insufficient_scope'): void {
  const bearer = /^bearer(\s|$)/i.test(headers.authorization ?? '')
  const reason = error ?? (bearer ? 'invalid_token' : undefined)
  reply.header('www-authenticate', `Bearer realm="petstore"${reason === undefined ? '' : `, error="${reason}"`}`)
}
