import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { ShuttingDown } from '../errors.ts'

/** Part of the grace period that is reserved for closing the database after the last connection. */
const DATABASE_CLOSE_MS = 500

/**
 * Stops the service. Requests in flight get a complete response unless they take longer than the grace period;
 * later requests on open connections get 503 and `Connection: close`.
 */
export const gracefulShutdown = fp(async function gracefulShutdown (
  app: FastifyInstance, { SHUTDOWN_GRACE_MS: graceMs }: Pick<Config, 'SHUTDOWN_GRACE_MS'>
) {
  let isStopping = false
  let deadline: NodeJS.Timeout | undefined

  app.addHook('preClose', async () => {
    isStopping = true
    // Closes idle connections now, and all others as soon as their response is sent.
    app.server.keepAliveTimeout = 1
    deadline = setTimeout(() => { app.server.closeAllConnections() }, Math.max(0, graceMs - DATABASE_CLOSE_MS))
  })
  app.addHook('onClose', async () => { clearTimeout(deadline) })

  app.addHook('onRequest', (_request, reply, done) => {
    if (!isStopping) return done()
    reply.header('connection', 'close')
    done(new ShuttingDown())
  })
}, { name: 'graceful-shutdown' })
