import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

/** Headers for responses that browsers do not display as a page. The service's own pages have other policies. */
export const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY'
}

/** Adds the security headers and `Request-Id` to every response, errors included. */
export const securityHeaders = fp(async function securityHeaders (app: FastifyInstance) {
  app.addHook('onRequest', ({ id }, reply, done) => {
    reply.headers(SECURITY_HEADERS).header('request-id', id)
    done()
  })
}, { name: 'security-headers' })
