import type { FastifyInstance } from 'fastify'

/** For answers that nobody shows as a page; the pages of the service have policies of their own. */
export const SECURITY = {
  'content-security-policy': "default-src 'none';frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY'
}

/** What every answer carries, errors included. */
export function standardHeaders (app: FastifyInstance): void {
  app.addHook('onRequest', ({ id }, reply, done) => {
    reply.headers(SECURITY).header('request-id', id)
    done()
  })
}
