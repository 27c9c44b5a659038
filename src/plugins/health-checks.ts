import type { FastifyInstance } from 'fastify'
import { DatabaseUnavailable } from '../errors.ts'

/** The paths of the health checks. */
export const HEALTH_CHECKS = ['/livez', '/readyz']

/** Adds routes about the service itself: without a key or a prefix, and not in the OpenAPI document. */
export async function healthChecks (app: FastifyInstance): Promise<void> {
  app.addHook('onRequest', async (_request, reply) => { reply.header('cache-control', 'no-store') })

  app.get('/livez', { schema: { hide: true } }, async () => ({ status: 'ok' }))

  app.get('/readyz', { schema: { hide: true } }, async () => {
    if (!(await app.isReady())) throw new DatabaseUnavailable()
    return { status: 'ok' }
  })
}
