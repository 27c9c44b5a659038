import type { ErrorObject } from 'ajv'
import { HTTP_URL_PATTERN, problemOfHttpUrl } from './http-url.ts'

/** The part of a request that a schema describes, as Fastify names it. */
export type HttpPart = 'body' | 'querystring' | 'params' | 'headers'

const PART_NAMES: Record<HttpPart, string> = {
  body: '', querystring: 'Query parameter ', params: 'Path parameter ', headers: 'Header '
}

/** 2^63-1, the largest id that a path or query accepts. */
export const MAX_INT64 = '9223372036854775807'

const DATE_TIME = 'an RFC 3339 date and time with an offset, such as 2026-11-21T10:00:00Z, in the years 1 to 9999'

/** The rules of patterns in words, after "must": clients never see a regular expression. */
const PATTERN_RULES = new Map<string, string>()

/** Returns a pattern for a schema. Messages describe it by its rule, such as "be two digits". */
export function describedPattern (pattern: string, rule: string): string {
  PATTERN_RULES.set(pattern, rule)
  return pattern
}

/** What Ajv says of a violation; the keyword decides which members there are. */
interface Params {
  missingProperty: string
  additionalProperty: string
  type: string | string[]
  allowedValues: string[]
  limit: number
  tag: string
  pattern: string
  format: string
}

/** Maximum length of a client's own name in a message. */
const MAX_NAME_LENGTH = 40

/** A violation, and what is known of the data. */
export interface Violation {
  error: ErrorObject
  part: HttpPart
  /** The value at the place of the violation. */
  value: unknown
  /** The names of parameters that can be given several times. */
  repeatable: string[]
}

const POINTERS: Record<HttpPart, string> = {
  body: '/body', querystring: '/query', params: '/path', headers: '/headers'
}

/** Returns the place of a violation: of a missing or surplus member, where it should or should not be. */
export function pointerOf ({ error: { instancePath, params: untyped }, part }: Violation): string {
  const { missingProperty, additionalProperty } = untyped as Partial<Params>
  const name = missingProperty ?? additionalProperty
  const member = name === undefined ? '' : `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
  return POINTERS[part] + instancePath + member
}

/** Describes a violation: the field and the rule that it breaks. */
export function explainViolation (violation: Violation): string {
  const { error: { instancePath, keyword, params: untyped }, part, repeatable } = violation
  const params = untyped as unknown as Params
  const names = instancePath.slice(1).split('/').filter((name) => name !== '')
  // An index says little of a list that the client may have written in another form.
  const inList = /^\d+$/.test(names.at(-1) ?? '')
  const path = names.filter((name) => !/^\d+$/.test(name)).join('.')
  if (keyword === 'required') return `${PART_NAMES[part]}${join(path, params.missingProperty)} is required`
  if (keyword === 'additionalProperties') {
    const [name = ''] = params.additionalProperty.split('[')
    const hint = part === 'querystring' && repeatable.includes(name) ? `; ${repeat(name)}` : ''
    return `${PART_NAMES[part]}${join(path, quote(params.additionalProperty))} is not allowed${hint}`
  }
  if (keyword === 'discriminator') {
    const { tagValues = [] } = violation.error.parentSchema as { tagValues?: string[] }
    return `${PART_NAMES[part]}${join(path, params.tag)} must be one of ${tagValues.join(', ')}`
  }
  if (part === 'body' && inList) return `Each item of ${path} ${explainRule(violation)}`
  const field = path === '' ? 'The body' : `${PART_NAMES[part]}${path}`
  if (part === 'body') return `${field} ${explainRule(violation)}`
  return `${field} ${explainText(violation, path, inList)}`
}

/** Describes a violation in a path or a query, whose values are text. */
function explainText (violation: Violation, name: string, inList: boolean): string {
  const { error: { keyword, params: untyped }, value, part } = violation
  const params = untyped as unknown as Params
  if (Array.isArray(value) && !inList && keyword === 'type') return 'is given twice; give it once'
  if (keyword === 'maxItems') return `must be given at most ${params.limit} times`
  if (inList && typeof value === 'string' && value.includes(',')) return `must have one value; ${repeat(name)}`
  if (keyword !== 'type') return explainRule(violation)
  if (params.type === 'boolean') return 'must be true or false'
  if (params.type !== 'integer' || typeof value !== 'string') return explainRule(violation)
  if (/^\d+$/.test(value)) {
    return value.startsWith('0') ? 'must be written without leading zeros' : `must be at most ${MAX_INT64}`
  }
  return `must be a whole number in digits, such as ${part === 'params' ? '7' : '20'}`
}

function repeat (name: string): string {
  return `to ask for several, repeat it: ${name}=1&${name}=2`
}

function explainRule (
  { error: { keyword, params: untyped, schema, parentSchema, message }, value }: Violation
): string {
  const params = untyped as unknown as Params
  switch (keyword) {
    case 'type': return `must be ${withArticle(params.type)}`
    case 'enum': return `must be ${params.allowedValues.length > 1 ? 'one of ' : ''}${params.allowedValues.join(', ')}`
    case 'minLength': return `must have at least ${countOf(params.limit, 'character')}`
    case 'maxLength': return `must have at most ${countOf(params.limit, 'character')}`
    case 'minItems': return `must have at least ${countOf(params.limit, 'item')}`
    case 'maxItems': return `must have at most ${countOf(params.limit, 'item')}`
    // The one schema with these keywords takes one of its members.
    case 'minProperties': return `must have ${Object.keys(membersOf(parentSchema)).join(' or ')}`
    case 'maxProperties': return `must have only one of ${Object.keys(membersOf(parentSchema)).join(', ')}`
    case 'uniqueItems': return 'must not contain the same item twice'
    case 'minimum': return `must be ${params.limit} or more`
    case 'maximum': return `must be ${params.limit} or less`
    case 'pattern':
      if (params.pattern === HTTP_URL_PATTERN) return problemOfHttpUrl(String(value))!
      return `must ${explainPattern(typeof schema === 'string' ? schema : params.pattern)}`
    case 'format': return params.format === 'uri' ? problemOfHttpUrl(String(value))! : `must be ${DATE_TIME}`
    default: return String(message)
  }
}

function membersOf (schema: ErrorObject['parentSchema']): object {
  return (schema as { properties: object }).properties
}

/** Returns the rule of a pattern in words, after "must". */
function explainPattern (pattern: string): string {
  return PATTERN_RULES.get(pattern) ?? 'have the form that the API reference describes'
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
