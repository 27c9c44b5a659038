import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import { ValidationFailed } from '../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The response contains a secret that is never stored, so it cannot be replayed. */
    secret?: boolean
  }
  interface FastifyRequest {
    idempotencyKey: string | undefined
  }
}

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Reads the Idempotency-Key of the writes in a scope (draft-ietf-httpapi-idempotency-key-header). Register it after
 * query-validation: its hook must run first, because the contract validates headers before path, query and body.
 */
export const idempotencyKey = fp(async function idempotencyKey (app: FastifyInstance) {
  app.decorateRequest('idempotencyKey', undefined)
  app.addHook('onRoute', (route: RouteOptions) => {
    if ([route.method].flat().every((method) => SAFE_METHODS.has(method))) return
    route.preValidation = [readIdempotencyKey, ...[route.preValidation ?? []].flat()]
  })
}, { name: 'idempotency-key', dependencies: ['query-validation'] })

function readIdempotencyKey (request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  const field = request.headers['idempotency-key']
  if (field !== undefined) request.idempotencyKey = parseIdempotencyKey(field, request)
  done()
}

function parseIdempotencyKey (field: string | string[], request: FastifyRequest): string {
  if (request.routeOptions.config.secret === true) {
    throw new ValidationFailed(
      'Idempotency-Key is not allowed: the response contains a secret, which is never stored and cannot be replayed'
    )
  }
  const [text = ''] = [field].flat()
  const key = unquote(text)
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new ValidationFailed('Idempotency-Key must be 1 to 255 visible ASCII characters')
  }
  return key
}

/** Removes quotes: the draft makes the field a quoted string (RFC 8941 section 3.3.3), but most clients omit them. */
function unquote (text: string): string {
  return /^"(.*)"$/.test(text) ? text.slice(1, -1).replace(/\\(["\\])/g, '$1') : text
}
