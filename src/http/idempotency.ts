import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { WriteContext } from '../database/group-commit/command.ts'
import { checkCollectionPreconditions, conditionsOf } from './conditional-requests.ts'

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
  const text = `${method} ${decodeURIComponent(path)} ${JSON.stringify(body, sortMembers)}`
  return createHash('sha256').update(text).digest('hex')
}

function sortMembers (_name: string, value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1))
}
