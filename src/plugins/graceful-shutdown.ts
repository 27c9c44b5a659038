import type { FastifyInstance } from 'fastify'
import { ShuttingDown } from '../errors.ts'

/** What is left of the grace for closing the database once the last connection is gone, in ms. */
const RESERVE_MS = 500

/**
 * How the service stops: a request whose head was read gets its whole answer, unless it takes longer
 * than the grace; one that comes later on an open connection is told to go elsewhere.
 */
export function gracefulShutdown (app: FastifyInstance, graceMs: number): void {
  let stopping = false

  app.addHook('preClose', async () => {
    stopping = true
    // Connections without a request are closed now; those that have one, as soon as it is answered.
    app.server.keepAliveTimeout = 1
    const cut = setTimeout(() => { app.server.closeAllConnections() }, Math.max(0, graceMs - RESERVE_MS))
    app.server.once('close', () => { clearTimeout(cut) })
  })

  app.addHook('onRequest', (_request, reply, done) => {
    if (!stopping) return done()
    reply.header('connection', 'close')
    done(new ShuttingDown())
  })
}
