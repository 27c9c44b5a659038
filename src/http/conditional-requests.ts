import type { FastifyError, FastifyRequest } from 'fastify'
import { PreconditionFailed } from '../errors.ts'

/** The precondition fields of a write (RFC 9110 section 13.1), unparsed. */
export interface Conditions {
  ifMatch?: string | undefined
  ifNoneMatch?: string | undefined
}

export function conditionsOf ({ headers }: FastifyRequest): Conditions {
  return { ifMatch: headers['if-match'], ifNoneMatch: headers['if-none-match'] }
}

/**
 * Returns the error of a write whose preconditions fail. Must be called inside the transaction of the write.
 *
 * @param etag the current entity tag of the record; `undefined` if there is no record yet
 */
export function checkPreconditions (
  { ifMatch, ifNoneMatch }: Conditions, etag: string | undefined
): FastifyError | undefined {
  if (ifMatch !== undefined && !strongMatch(ifMatch, etag)) return new PreconditionFailed('If-Match')
  if (ifNoneMatch !== undefined && weakMatch(ifNoneMatch, etag)) return new PreconditionFailed('If-None-Match')
  return undefined
}

/** Compares weakly (RFC 9110 section 8.8.3.2): a weak tag matches the strong tag with the same value. */
export function weakMatch (field: string, etag: string | undefined): boolean {
  return etag !== undefined && (field.trim() === '*' || tags(field).some((tag) => tag.replace(/^W\//, '') === etag))
}

function strongMatch (field: string, etag: string | undefined): boolean {
  return etag !== undefined && (field.trim() === '*' || tags(field).includes(etag))
}

function tags (field: string): string[] {
  return field.match(/(W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g) ?? []
}
