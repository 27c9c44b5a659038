import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { RateLimited } from '../errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The rate limits. Each function counts one use and throws RateLimited above its limit, if its limit is on. */
    limits: {
      perKey: RateLimit
      signup: RateLimit
      failedAuth: RateLimit
    }
  }
}

type RateLimit = (request: FastifyRequest, reply: FastifyReply) => Promise<void>
type ClientKey = (request: FastifyRequest) => string

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** Maximum number of clients counted at once. One more replaces the client that was idle for the longest time. */
const MAX_CLIENTS = 50_000

/** Adds the rate limits, counted in this process alone. All addresses of an IPv6 /64 count as one client. */
export const rateLimits = fp(async function rateLimits (app: FastifyInstance, config: Config) {
  await app.register(rateLimit, { global: false, cache: MAX_CLIENTS })

  function createLimit (max: number, timeWindow: number, keyGenerator?: ClientKey): RateLimit {
    if (max === 0) return async () => {}
    const count = app.createRateLimit({ max, timeWindow, ...(keyGenerator && { keyGenerator }) })
    return async (request, reply) => {
      const use = await count(request)
      if (use.isAllowed) return
      // draft-ietf-httpapi-ratelimit-headers, as structured fields.
      reply.header('ratelimit-policy', `"default";q=${max};w=${timeWindow / 1000}`)
      reply.header('ratelimit', `"default";r=${use.remaining};t=${use.ttlInSeconds}`)
      if (!use.isExceeded) return
      reply.header('retry-after', use.ttlInSeconds)
      throw new RateLimited(use.ttlInSeconds)
    }
  }

  app.decorate('limits', {
    perKey: createLimit(config.RATE_LIMIT_PER_KEY, MINUTE_MS, ({ auth }) => String(auth.key)),
    signup: createLimit(config.RATE_LIMIT_SIGNUP, HOUR_MS),
    failedAuth: createLimit(config.RATE_LIMIT_FAILED_AUTH, MINUTE_MS)
  })
}, { name: 'rate-limits' })
