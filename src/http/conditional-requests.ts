import type { FastifyError, FastifyRequest } from 'fastify'
import { PreconditionFailed, ValidationFailed, withProblem } from '../errors.ts'

/** The value of `If-Match` or `If-None-Match`: `*`, or entity tags as the client wrote them. */
export type EntityTags = '*' | string[]

/**
 * The `If-Match` in examples that must answer 412: a tool that sends them must not delete its account, its key or what
 * other examples name.
 */
export const STALE_EXAMPLE = '"0"'

/** The preconditions of a request (RFC 9110 section 13.1). */
export interface Conditions {
  ifMatch?: EntityTags | undefined
  ifNoneMatch?: EntityTags | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the plugin request-validation if the request has any. */
    conditions: Conditions | undefined
  }
}

const NONE: Conditions = {}

export function conditionsOf ({ conditions = NONE }: FastifyRequest): Conditions {
  return conditions
}

/** @throws ValidationFailed if a field is malformed */
export function parseConditions ({ headers }: Pick<FastifyRequest, 'headers'>): Conditions | undefined {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined
  return {
    ifMatch: ifMatch === undefined ? undefined : parseEntityTags('If-Match', ifMatch),
    ifNoneMatch: ifNoneMatch === undefined ? undefined : parseEntityTags('If-None-Match', ifNoneMatch)
  }
}

/** An entity tag (RFC 9110 section 8.8.3). */
const TAG = '(?:W/)?"[\\x21\\x23-\\x7e\\x80-\\xff]*"'
const TAGS = new RegExp(TAG, 'g')

/** A list, in which a recipient must ignore empty elements (RFC 9110 section 5.6.1.2). */
const LIST = new RegExp(`^[\\t ]*(?:${TAG}[\\t ]*)?(?:,[\\t ]*(?:${TAG}[\\t ]*)?)*$`)

/** What `If-Match` and `If-None-Match` accept, for the OpenAPI document. */
export const ENTITY_TAGS_PATTERN = `^(\\*|${LIST.source.slice(1, -1)})$`

function parseEntityTags (name: string, field: string): EntityTags {
  if (field.trim() === '*') return '*'
  if (LIST.test(field)) return field.match(TAGS) ?? []
  const error = new ValidationFailed(`${name} must be * or entity tags in double quotes, such as "2" or "2", "3"`)
  throw withProblem(error, `/headers/${name}`, 'pattern')
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

/** @throws the error that `checkPreconditions` returns */
export function requirePreconditions (conditions: Conditions, etag: string | undefined): void {
  const failed = checkPreconditions(conditions, etag)
  if (failed !== undefined) throw failed
}

/** An entity tag that no request can contain. */
const NO_TAG = ''

/** Returns the error of a POST to a collection, which always exists and has no entity tag. */
export function checkCollectionPreconditions (conditions: Conditions): FastifyError | undefined {
  return checkPreconditions(conditions, NO_TAG)
}

/**
 * Tells whether the client already has what it reads (RFC 9110 section 13.2.2).
 *
 * @param etag the entity tag of the response; `undefined` for a response that has none, such as a stream
 * @throws PreconditionFailed
 */
export function isNotModified ({ ifMatch, ifNoneMatch }: Conditions, etag: string = NO_TAG): boolean {
  if (ifMatch !== undefined && !strongMatch(ifMatch, etag)) throw new PreconditionFailed('If-Match')
  return ifNoneMatch !== undefined && weakMatch(ifNoneMatch, etag)
}

/** Compares weakly (RFC 9110 section 8.8.3.2): a weak tag matches the strong tag with the same value. */
function weakMatch (tags: EntityTags, etag: string | undefined): boolean {
  return etag !== undefined && (tags === '*' || tags.some((tag) => tag.replace(/^W\//, '') === etag))
}

function strongMatch (tags: EntityTags, etag: string | undefined): boolean {
  return etag !== undefined && (tags === '*' || tags.includes(etag))
}
