import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Idempotency } from './store.ts'

/** Returns the versions in `If-Match`. */
export function versionsOf ({ headers }: FastifyRequest): number[] | undefined {
  const field = headers['if-match']
  if (field === undefined || field === '*') return undefined
  return [...field.matchAll(/"(\d+)"/g)].map(([, version]) => Number(version))
}

/** Returns the Idempotency-Key of a request, and its method, path and JSON value as a hash. */
export function idempotencyOf ({ method, url, headers, body }: FastifyRequest): Idempotency | undefined {
  const field = headers['idempotency-key']
  if (field === undefined) return undefined
  return {
    key: String(field).replace(/^"(.*)"$/, '$1'),
    fingerprint: hash('sha256', `${method} ${url} ${JSON.stringify(body, sortMembers)}`, 'hex')
  }
}

function sortMembers (_name: string, value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1))
}
