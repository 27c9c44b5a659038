import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import type { WriteContext } from '../database/group-commit/command.ts'
import { ValidationFailed } from '../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The answer holds a secret that is never stored, so it cannot be replayed. */
    secret?: boolean
  }
  interface FastifyRequest {
    idempotencyKey: string | undefined
  }
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS'])

/** A hook: lets writes be repeated under an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header). */
export function acceptIdempotencyKey (route: RouteOptions): void {
  if ([route.method].flat().every((method) => SAFE.has(method))) return
  route.preValidation = [readIdempotencyKey, ...[route.preValidation ?? []].flat()]
}

function readIdempotencyKey (request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  const field = request.headers['idempotency-key']
  if (field !== undefined) request.idempotencyKey = keyOf(field, request)
  done()
}

function keyOf (field: string | string[], request: FastifyRequest): string {
  if (request.routeOptions.config.secret === true) {
    throw new ValidationFailed('Idempotency-Key is not taken here: the answer holds a secret, which is never stored and so cannot be replayed')
  }
  const [text = ''] = [field].flat()
  const key = unquoted(text)
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new ValidationFailed('Idempotency-Key must be 1 to 255 visible ASCII characters')
  }
  return key
}

/** The draft makes the field a quoted string (RFC 8941 section 3.3.3); most clients send it bare. */
function unquoted (text: string): string {
  return /^"(.*)"$/.test(text) ? text.slice(1, -1).replace(/\\(["\\])/g, '$1') : text
}

/** In whose name a request writes, and under which Idempotency-Key. */
export function writeContext (request: FastifyRequest): WriteContext {
  const { auth: { account }, idempotencyKey: key } = request
  return { account, idempotency: key === undefined ? undefined : { key, fingerprint: fingerprint(request) } }
}

/** The same request is the same method, path and JSON value, however the path's characters are escaped. */
function fingerprint ({ method, url, body }: FastifyRequest): string {
  const [path = ''] = url.split('?')
  return createHash('sha256').update(`${method} ${decodeURIComponent(path)} ${JSON.stringify(body, sortMembers)}`).digest('hex')
}

function sortMembers (_name: string, value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1))
}
