import type { FastifyInstance } from 'fastify'
import { DatabaseUnavailable } from '../errors.ts'

/** Routes about the service itself: no key, no prefix, not in the document. */
export async function serviceRoutes (app: FastifyInstance): Promise<void> {
  app.addHook('onRequest', async (_request, reply) => { reply.header('cache-control', 'no-store') })

  app.get('/livez', { schema: { hide: true } }, async () => ({ status: 'ok' }))

  app.get('/readyz', { schema: { hide: true } }, async () => {
    if (!(await app.isReady())) throw new DatabaseUnavailable()
    return { status: 'ok' }
  })
}
