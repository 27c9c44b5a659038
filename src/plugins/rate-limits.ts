import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { RateLimited } from '../errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Each counts one use and throws RateLimited when it was one too many; does nothing when its limit is off. */
    limits: {
      perKey: Limit
      signup: Limit
      failedAuth: Limit
    }
  }
}

export type Limit = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** Callers remembered at once; beyond them the one not seen for longest is forgotten. */
const CALLERS = 50_000

/** Rate limits, counted by this process alone. An IPv6 caller is its /64, which is what one is given. */
export const limits = fp(async function limits (app: FastifyInstance, config: Config) {
  await app.register(rateLimit, { global: false, cache: CALLERS })

  function limit (max: number, timeWindow: number, keyGenerator?: (request: FastifyRequest) => string): Limit {
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
    perKey: limit(config.RATE_LIMIT_PER_KEY, MINUTE_MS, ({ auth }) => String(auth.key)),
    signup: limit(config.RATE_LIMIT_SIGNUP, HOUR_MS),
    failedAuth: limit(config.RATE_LIMIT_FAILED_AUTH, MINUTE_MS)
  })
}, { name: 'limits' })
