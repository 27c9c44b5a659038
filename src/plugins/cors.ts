import fastifyCors, { type FastifyCorsOptions, type OriginFunction } from '@fastify/cors'
import type { FastifyInstance, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The CORS options of this route; `false` switches @fastify/cors off for it. */
    cors?: FastifyCorsOptions | false
  }
}

/** Lets pages of the origins in `CORS_ORIGINS` use the service. Routes that every origin may read say so themselves. */
export const cors = fp(async function cors (app: FastifyInstance, { CORS_ORIGINS }: Pick<Config, 'CORS_ORIGINS'>) {
  const origins = CORS_ORIGINS.split(',').map((origin) => origin.trim()).filter((origin) => origin !== '')
  await app.register(fastifyCors, {
    // The plugin method-not-allowed answers OPTIONS.
    preflightContinue: true,
    strictPreflight: false,
    origin: origins.length === 0 ? false : origins.includes('*') ? allowAll : origins.map(matcherOf),
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    allowedHeaders: [
      'Authorization', 'Content-Type', 'Idempotency-Key', 'If-Match', 'If-None-Match', 'Last-Event-ID',
      'Petstore-Run', 'Request-Id'
    ],
    exposedHeaders: [
      'ETag', 'Link', 'Location', 'Request-Id', 'Deprecation', 'Sunset', 'Retry-After', 'RateLimit',
      'RateLimit-Policy', 'Idempotency-Replayed', 'Event-Id', 'WWW-Authenticate', 'Petstore-Fault',
      'Petstore-Clock'
    ]
  })
}, { name: 'cors' })

/** A function, because the plugin sends no `Vary: Origin` for a constant. */
const allowAll: OriginFunction = (_origin, callback) => { callback(null, '*') }

/**
 * Returns an origin as browsers send it (RFC 6454 section 6.2): in lower case, with Punycode, without the default port.
 * For one whose port is `*`, returns a pattern: any port, or the default port.
 */
function matcherOf (text: string): string | RegExp {
  const { origin } = new URL(text.replace(/:\*$/, ''))
  if (!text.endsWith(':*')) return origin
  const start = origin.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${start}(:\\d{1,5})?$`)
}

/** Switches CORS off for the routes of a scope: without an allowed origin, its work would be wasted. */
export const corsOff = fp(async function corsOff (app: FastifyInstance) {
  app.addHook('onRoute', (route: RouteOptions) => { route.config = { ...route.config, cors: false } })
}, { name: 'cors-off', dependencies: ['cors'] })
