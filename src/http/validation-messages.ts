import type { ErrorObject } from 'ajv'

/** The part of a request that a schema describes, as Fastify names it. */
export type HttpPart = 'body' | 'querystring' | 'params' | 'headers'

const PART_NAMES: Record<HttpPart, string> = {
  body: '', querystring: 'Query parameter ', params: 'Path parameter ', headers: 'Header '
}

const FORMATS: Record<string, string> = {
  'date-time': 'an RFC 3339 date and time with an offset, such as 2026-11-21T10:00:00Z, in the years 1 to 9999',
  uri: 'an http or https URL'
}

/** What Ajv says of a violation; the keyword decides which members there are. */
interface Params {
  missingProperty: string
  additionalProperty: string
  type: string | string[]
  allowedValues: string[]
  limit: number
  pattern: string
  format: string
}

/** Maximum length of a client's own name in a message. */
const MAX_NAME_LENGTH = 40

/** Describes a violation: the field and the rule that it breaks. */
export function explainViolation (violation: ErrorObject, part: HttpPart): string {
  const { instancePath, keyword } = violation
  const params = violation.params as Params
  const path = instancePath.slice(1).replaceAll('/', '.')
  if (keyword === 'required') return `${PART_NAMES[part]}${join(path, params.missingProperty)} is required`
  if (keyword === 'additionalProperties') {
    return `${PART_NAMES[part]}${join(path, quote(params.additionalProperty))} is not allowed`
  }
  const field = path === '' ? 'The body' : `${PART_NAMES[part]}${path}`
  return `${field} ${explainRule(violation)}`
}

function explainRule ({ keyword, params: untyped, schema, message }: ErrorObject): string {
  const params = untyped as Params
  switch (keyword) {
    case 'type': return `must be ${withArticle(params.type)}`
    case 'enum': return `must be one of ${params.allowedValues.join(', ')}`
    case 'minLength': return `must have at least ${countOf(params.limit, 'character')}`
    case 'maxLength': return `must have at most ${countOf(params.limit, 'character')}`
    case 'minItems': return `must have at least ${countOf(params.limit, 'item')}`
    case 'maxItems': return `must have at most ${countOf(params.limit, 'item')}`
    case 'uniqueItems': return 'must not contain the same item twice'
    case 'minimum': return `must be ${params.limit} or more`
    case 'maximum': return `must be ${params.limit} or less`
    case 'pattern': return explainPattern(typeof schema === 'string' ? schema : params.pattern)
    case 'format': return `must be ${FORMATS[params.format] ?? params.format}`
    default: return String(message)
  }
}

function explainPattern (pattern: string): string {
  return pattern.includes('\\u0000') ? 'must not contain the character U+0000' : `must match the pattern ${pattern}`
}

function join (path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

/** Quotes a client's own name, so that it is short and printable. */
function quote (name: string): string {
  return JSON.stringify(name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name)
}

function countOf (count: number, noun: string): string {
  return count === 1 ? `${count} ${noun}` : `${count} ${noun}s`
}

function withArticle (type: string | string[]): string {
  const [first = '', ...rest] = [type].flat()
  return [/^[aeiou]/.test(first) ? `an ${first}` : `a ${first}`, ...rest].join(' or ')
}
