import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { RateLimited } from '../errors.ts'
import { WindowCounts } from './window-counts.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The rate limits. Each function throws RateLimited above its limit, if its limit is on. */
    limits: {
      /** Counts the requests of an account. */
      perAccount: RateLimit
      /** Counts the accounts that a client opened. */
      signup: RateLimit
      /** Counts the failed authentications of a client. */
      failedAuth: RateLimit
    }
  }
}

type RateLimit = (request: FastifyRequest, reply: FastifyReply) => Promise<void>
type ClientKey = (request: FastifyRequest) => string

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** Time to wait for a client whose other requests fill the limit while they are in flight. */
const IN_FLIGHT_SECONDS = 1

/** Adds the rate limits, counted in this process alone. All addresses of an IPv6 /64 count as one client. */
export const rateLimits = fp(async function rateLimits (app: FastifyInstance, config: Config) {
  await app.register(rateLimit, { global: false, store: WindowCounts })

  function createLimit (max: number, timeWindow: number, keyGenerator?: ClientKey): RateLimit {
    if (max === 0) return async () => {}
    const count = app.createRateLimit({ max, timeWindow, ...(keyGenerator && { keyGenerator }) })
    return async (request, reply) => {
      const use = await count(request)
      if (use.isAllowed) return
      setHeaders(reply, { max, timeWindow, remaining: use.remaining, seconds: use.ttlInSeconds })
      if (use.isExceeded) reject(reply, use.ttlInSeconds)
    }
  }

  /**
   * Counts requests that are answered 201. A request in flight counts until then, so that requests at the same time
   * cannot exceed the limit. So does one whose client disconnects, because it may still take effect.
   */
  function createSuccessLimit (max: number, timeWindow: number): RateLimit {
    if (max === 0) return async () => {}
    const count = app.createRateLimit({ max, timeWindow })
    const inFlight = new Map<string, number>()
    return async (request, reply) => {
      const use = await count(request, { increment: false })
      if (use.isAllowed) return
      const { key } = use
      const others = inFlight.get(key) ?? 0
      const remaining = use.remaining - others
      const isFull = remaining <= 0
      // The window of a client without a count begins now.
      const untilReset = use.ttlInSeconds === 0 ? timeWindow / 1000 : use.ttlInSeconds
      // For both fields: the draft says that Retry-After SHOULD NOT be earlier than the time in RateLimit.
      const seconds = isFull && use.remaining > 0 ? IN_FLIGHT_SECONDS : untilReset
      setHeaders(reply, { max, timeWindow, remaining: Math.max(0, remaining - 1), seconds })
      if (isFull) reject(reply, seconds)
      // Its client left while it waited: it takes no effect, and Node emits `close` once.
      if (reply.raw.destroyed) return
      inFlight.set(key, others + 1)
      reply.raw.once('close', () => {
        const left = inFlight.get(key)! - 1
        if (left === 0) inFlight.delete(key)
        else inFlight.set(key, left)
        if (reply.statusCode === 201 || !reply.raw.writableEnded) void count(request)
      })
    }
  }

  app.decorate('limits', {
    perAccount: createLimit(config.RATE_LIMIT_PER_ACCOUNT, MINUTE_MS, ({ auth }) => String(auth.account)),
    signup: createSuccessLimit(config.RATE_LIMIT_SIGNUP, HOUR_MS),
    failedAuth: createLimit(config.RATE_LIMIT_FAILED_AUTH, MINUTE_MS)
  })
}, { name: 'rate-limits' })

interface Use { max: number, timeWindow: number, remaining: number, seconds: number }

/** Sets the fields of draft-ietf-httpapi-ratelimit-headers, as structured fields. */
function setHeaders (reply: FastifyReply, { max, timeWindow, remaining, seconds }: Use): void {
  reply.header('ratelimit-policy', `"default";q=${max};w=${timeWindow / 1000}`)
  reply.header('ratelimit', `"default";r=${remaining};t=${seconds}`)
}

function reject (reply: FastifyReply, seconds: number): never {
  reply.header('retry-after', seconds)
  throw new RateLimited(seconds)
}
