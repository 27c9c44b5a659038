import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { RequestProblem } from '../errors.ts'
import { onRequestEnd } from './request-end.ts'
import { hideSecrets } from './secrets.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Prefix of the API key that the request sent; `undefined` for anything else than an API key. */
    keyPrefix: string | undefined
  }
  interface FastifyReply {
    /** The code of the error that the service sends. */
    errorCode: string | undefined
    /** Where the request breaks which rule, if that is known. */
    problem: RequestProblem | undefined
  }
}

const MAX_PATH_LENGTH = 200

/** Logs one line for each request, at its end: what was requested, from where, and with which key. */
export const requestLogging = fp(async function requestLogging (app: FastifyInstance) {
  app.decorateRequest('keyPrefix', undefined)
  app.decorateReply('errorCode', undefined)
  app.decorateReply('problem', undefined)
  onRequestEnd(app, (request, reply, isComplete) => {
    const { log, method, routeOptions, ip, keyPrefix } = request
    const auth = request.auth as FastifyRequest['auth'] | null
    log.info({
      method,
      route: routeOptions.url,
      path: pathOf(request),
      status: reply.raw.headersSent ? reply.statusCode : undefined,
      incomplete: isComplete ? undefined : true,
      code: reply.errorCode,
      ms: Math.round(reply.elapsedTime * 100) / 100,
      account: auth?.account,
      key: keyPrefix,
      address: ip
    }, 'request')
  })
}, { name: 'request-logging' })

/** Returns the path without the query, which can hold personal data, and without a secret that is there by mistake. */
function pathOf ({ originalUrl }: FastifyRequest): string {
  const path = hideSecrets(originalUrl.split(/[?#]/, 1)[0]!)
  return path.length > MAX_PATH_LENGTH ? `${path.slice(0, MAX_PATH_LENGTH)}…` : path
}
