import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

/** Logs one line for each request, after its response. */
export const requestLogging = fp(async function requestLogging (app: FastifyInstance) {
  app.addHook('onResponse', ({ log, method, routeOptions }, reply, done) => {
    const ms = Math.round(reply.elapsedTime * 100) / 100
    log.info({ method, route: routeOptions.url, status: reply.statusCode, ms }, 'request')
    done()
  })
}, { name: 'request-logging' })
