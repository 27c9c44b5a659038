import type { FastifyInstance, FastifyPluginAsync, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import { RateLimited } from '../errors.ts'
import { countRequests, type Counted } from './commands.ts'

/**
 * Counts the requests of accounts that have set limits, except those of the lab. Requests of other accounts wait for
 * nothing.
 */
export const limitHooks: FastifyPluginAsync = fp(async function limitHooks (app: FastifyInstance) {
  const labPaths = `${app.basePath}/lab/`
  app.addHook('onRequest', (request, reply, done) => {
    const { auth: { account, key }, routeOptions: { url = '' } } = request
    if (!app.lab!.states.hasLimits(account) || url.startsWith(labPaths)) return done()
    app.commit(countRequests, { account, key, arrivedAt: Date.now() }, { account }).then(({ record }) => {
      if (record === null) return done()
      setFields(reply, record)
      done(record.use.isRefused ? refuse(reply, record) : undefined)
    }, done)
  })
}, { name: 'limit-hooks', dependencies: ['database', 'authentication'] })

function setFields (reply: FastifyReply, { limits, use: { remaining, seconds } }: Counted): void {
  const { requests, windowSeconds, fields } = limits
  if (fields === 'ietf') {
    reply.header('ratelimit-policy', `"default";q=${requests};w=${windowSeconds}`)
    reply.header('ratelimit', `"default";r=${remaining};t=${seconds}`)
  } else if (fields === 'x-ratelimit') {
    reply.header('x-ratelimit-limit', requests)
    reply.header('x-ratelimit-remaining', remaining)
    reply.header('x-ratelimit-reset', seconds)
  }
}

function refuse (reply: FastifyReply, { limits: { retryAfter }, use: { seconds, date } }: Counted): Error {
  if (retryAfter === 'seconds') reply.header('retry-after', seconds)
  // An HTTP-date of real time, with which clients compare it (RFC 9110 section 10.2.3).
  if (retryAfter === 'date') reply.header('retry-after', new Date(date).toUTCString())
  return new RateLimited(seconds)
}
