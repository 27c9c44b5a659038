import { Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { ShuttingDown } from '../errors.ts'

/** Part of the grace period that is reserved for closing the database after the last connection, and its minimum. */
export const DATABASE_CLOSE_MS = 500

/** Interval at which a process that drains counts its connections. */
const DRAIN_CHECK_MS = 50

declare module 'fastify' {
  interface FastifyInstance {
    /** What accepts the connections of this process. */
    listeners: Set<Server>
    /**
     * Accepts no more connections, and answers the requests on open ones, each as the last of its connection. Resolves
     * when all connections have ended, or after a time. For processes that another one replaces: no request is refused.
     */
    drain: (ms: number) => Promise<void>
    /** Tells whether the service is being closed. */
    isStopping: () => boolean
  }
}

/**
 * Stops the service. Requests in flight get a complete response unless they take longer than the grace period;
 * later requests on open connections get 503 and `Connection: close`.
 */
export const gracefulShutdown = fp(async function gracefulShutdown (
  app: FastifyInstance, { SHUTDOWN_GRACE_MS: graceMs }: Pick<Config, 'SHUTDOWN_GRACE_MS'>
) {
  let isStopping = false
  let isDraining = false
  let deadline: NodeJS.Timeout | undefined

  const listeners = new Set<Server>([app.server])
  app.decorate('listeners', listeners)
  app.decorate('isStopping', () => isStopping)
  app.decorate('drain', async (ms) => {
    isDraining = true
    // Not as HTTP servers do, which also close idle connections: a request may be on its way on each.
    for (const listener of listeners) Server.prototype.close.call(listener)
    const end = performance.now() + ms
    while (performance.now() < end && await countConnections(listeners) > 0) await sleep(DRAIN_CHECK_MS)
  })

  app.addHook('preClose', async () => {
    isStopping = true
    // Closes idle connections now, and all others as soon as their response is sent.
    app.server.keepAliveTimeout = 1
    deadline = setTimeout(() => { app.server.closeAllConnections() }, Math.max(0, graceMs - DATABASE_CLOSE_MS))
  })
  app.addHook('onClose', async () => { clearTimeout(deadline) })

  app.addHook('onRequest', (_request, reply, done) => {
    if (!isStopping && !isDraining) return done()
    reply.header('connection', 'close')
    done(isStopping ? new ShuttingDown() : undefined)
  })
}, { name: 'graceful-shutdown' })

async function countConnections (listeners: Iterable<Server>): Promise<number> {
  const counts = [...listeners].map(async (listener) => await promisify<number>((done) => {
    listener.getConnections(done)
  })())
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}
