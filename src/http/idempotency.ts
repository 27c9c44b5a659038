import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { WriteContext } from '../database/group-commit/command.ts'
import { ValidationFailed, withProblem } from '../errors.ts'
import { checkCollectionPreconditions, conditionsOf } from './conditional-requests.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The response contains a secret that is never stored, so it cannot be replayed. */
    secret?: boolean
    /** The operation changes nothing, although its method is POST: read-only keys may use it. */
    readsOnly?: boolean
  }
  interface FastifyRequest {
    /** Set by the plugin request-validation if the request is a write and has one. */
    idempotencyKey: string | undefined
  }
}

/** Methods of requests that have the same effect when they are repeated without a key (RFC 9110 section 9.2.2). */
const REPEATABLE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT'])

/**
 * Returns the Idempotency-Key of a write (draft-ietf-httpapi-idempotency-key-header).
 *
 * @throws ValidationFailed if it is malformed, or if the operation takes none
 */
export function parseIdempotencyKey (request: FastifyRequest): string | undefined {
  if (request.headers['idempotency-key'] === undefined || REPEATABLE_METHODS.has(request.method)) return undefined
  const { config } = request.routeOptions
  if (config.readsOnly === true) return undefined
  const refuse = (message: string, rule: string): Error =>
    withProblem(new ValidationFailed(message), '/headers/Idempotency-Key', rule)
  if (config.secret === true) {
    throw refuse(
      'Idempotency-Key is not allowed: the response contains a secret, which is never stored and cannot be replayed',
      'additionalProperties'
    )
  }
  const key = keyOf(request)
  if (key === undefined) throw refuse('Idempotency-Key must be 1 to 255 visible ASCII characters', 'pattern')
  return key
}

/** Returns the Idempotency-Key of a write, if it has one that is well-formed. */
export function keyOf ({ method, headers }: FastifyRequest): string | undefined {
  const field = headers['idempotency-key']
  if (field === undefined || REPEATABLE_METHODS.has(method)) return undefined
  const [text = ''] = [field].flat()
  const key = unquote(text)
  return /^[\x21-\x7e]{1,255}$/.test(key) ? key : undefined
}

/** Removes quotes: the draft makes the field a quoted string (RFC 8941 section 3.3.3), but most clients omit them. */
function unquote (text: string): string {
  return /^"(.*)"$/.test(text) ? text.slice(1, -1).replace(/\\(["\\])/g, '$1') : text
}

/**
 * Returns the account that a request writes for, the Idempotency-Key of the write, and the error of a POST to a
 * collection whose preconditions fail. The commands of all other writes check the preconditions themselves.
 */
export function writeContext (request: FastifyRequest): WriteContext {
  const context = recordWriteContext(request)
  if (request.method !== 'POST') return context
  const { account, idempotency } = context
  return { account, idempotency, rejection: checkCollectionPreconditions(conditionsOf(request)) }
}

/** Returns the context of a write whose preconditions are those of one record, although it may be a POST. */
export function recordWriteContext (request: FastifyRequest): WriteContext {
  const { auth: { account }, idempotencyKey: key } = request
  return { account, idempotency: key === undefined ? undefined : { key, fingerprint: fingerprint(request) } }
}

/** Identifies a request by method, decoded path and JSON value, so that escapes and member order make no difference. */
function fingerprint ({ method, url, body }: FastifyRequest): string {
  const [path = ''] = url.split('?')
  const text = `${method} ${decodeURIComponent(path)} ${canonicalJson(body)}`
  return createHash('sha256').update(text).digest('hex')
}

/** Returns the JSON text of a value, the same whatever the order of its members. */
export function canonicalJson (value: unknown): string {
  return JSON.stringify(value, sortMembers)
}

function sortMembers (_name: string, value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1))
}
