import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { ValidationFailed } from '../errors.ts'

/**
 * How requests are held against their schemas. Bodies are judged as they are; the text of paths and
 * queries is read as the schema's type first, by the contract's narrow rules. Nothing is repaired, and
 * the first violation is reported alone: all at once is a cost that an attacker would choose.
 */

type HttpPart = 'body' | 'querystring' | 'params' | 'headers'

interface Part { schema: PartSchema, httpPart?: string | undefined }
interface PartSchema { $ref?: string, properties?: Record<string, PropertySchema> }
/** What is wrong with data, if anything. */
type Validate = (data: unknown) => ErrorObject | undefined
interface PropertySchema { type?: string, format?: string, items?: PropertySchema }

/** A Fastify validator compiler: gets all named schemas, returns the compiler of one part of one route. */
export function buildValidatorCompiler (externalSchemas: unknown): (part: Part) => (data: unknown) => { value: unknown } | { error: Error } {
  const ajv = new Ajv({
    coerceTypes: false,
    useDefaults: false,
    removeAdditional: false,
    allErrors: false,
    strict: true,
    // The test of the document does, for all of them; at each start it would take 100 ms.
    validateSchema: false,
    formats: { int64: true, 'date-time': isTimestamp, uri: isHttpUrl },
    keywords: ['example']
  })
  const components = externalSchemas as Record<string, PartSchema>
  for (const schema of Object.values(components)) ajv.addSchema(schema)

  return ({ schema, httpPart }) => {
    // Compiled when it is first asked: all of them together would be a fifth of the time that a start takes.
    let compiled: ValidateFunction | undefined
    const validate: Validate = (data) => (compiled ??= ajv.compile(schema))(data) ? undefined : compiled.errors![0]!
    const properties = (schema.properties ?? components[schema.$ref?.replace('#', '') ?? '']?.properties) ?? {}
    const part = httpPart as HttpPart
    if (part === 'body') {
      const ids = Object.keys(properties).filter((name) => properties[name]?.format === 'int64')
      return (data) => validateBody(validate, data as Record<string, unknown>, ids)
    }
    return (data) => judge(validate, coerceStrings(data as Record<string, unknown>, properties), part)
  }
}

/** A hook: an operation that names no query parameters takes none, and says so before it says what is wrong with a body. */
export function rejectUnknownQuery (route: RouteOptions): void {
  const { schema } = route
  if (schema === undefined) return
  schema.querystring ??= { type: 'object', properties: {}, additionalProperties: false }
  if (schema.body !== undefined) route.preValidation = [validateParamsAndQuery, ...[route.preValidation ?? []].flat()]
}

/** Fastify judges the body between the path and the query; the contract's order is path, query, body. */
function validateParamsAndQuery (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void {
  for (const [part, data] of [['params', request.params], ['querystring', request.query]] as const) {
    const judged = request.getValidationFunction(part)?.(data as object) as unknown as { error?: Error } | undefined
    if (judged?.error !== undefined) return done(judged.error)
  }
  done()
}

function judge (validate: Validate, data: unknown, part: HttpPart): { value: unknown } | { error: Error } {
  const violation = validate(data)
  return violation === undefined ? { value: data } : { error: new ValidationFailed(explain(violation, part)) }
}

function validateBody (validate: Validate, data: Record<string, unknown>, ids: string[]): { value: unknown } | { error: Error } {
  const judged = judge(validate, data, 'body')
  if ('error' in judged) return judged
  const field = loneSurrogate(data, '')
  if (field !== undefined) return { error: new ValidationFailed(`${field} holds half of a surrogate pair, which is no character`) }
  for (const name of ids) {
    if (Number(data[name]) > Number.MAX_SAFE_INTEGER) data[name] = NEVER_ASSIGNED
  }
  return judged
}

/** Ids are digits and nothing else, up to 2^63-1. */
const DIGITS = /^(0|[1-9][0-9]{0,18})$/
const MAX_INT64 = 2n ** 63n - 1n

/** An id above 2^53-1 is never assigned; all of them read as this one, so that rounding reaches no row. */
const NEVER_ASSIGNED = Number.MAX_SAFE_INTEGER + 1

function coerceStrings (data: Record<string, unknown>, properties: Record<string, PropertySchema>): Record<string, unknown> {
  for (const name in data) {
    const schema = properties[name]
    if (schema === undefined) continue
    const value = data[name]
    if (schema.type === 'array') {
      data[name] = (Array.isArray(value) ? value : [value]).map((item) => coerceString(item, schema.items?.type))
    } else {
      data[name] = coerceString(value, schema.type)
    }
  }
  return data
}

/** Text that is not of the type stays text, and fails the schema. */
function coerceString (value: unknown, type: string | undefined): unknown {
  if (typeof value !== 'string') return value
  if (type === 'integer' && DIGITS.test(value)) {
    const number = Number(value)
    if (number <= Number.MAX_SAFE_INTEGER) return number
    return BigInt(value) <= MAX_INT64 ? NEVER_ASSIGNED : value
  }
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true'
  return value
}

const TIMESTAMP = /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/
const FIRST_INSTANT = Date.parse('0001-01-01T00:00:00.000Z')
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z')

/** RFC 3339 section 5.6, without leap seconds and within the years that both databases store. */
function isTimestamp (text: string): boolean {
  const [, year, month, day] = TIMESTAMP.exec(text) ?? []
  if (year === undefined) return false
  const date = new Date(`${year}-${month}-${day}T00:00:00Z`)
  if (Number.isNaN(date.getTime()) || date.getUTCDate() !== Number(day)) return false
  const instant = Date.parse(text)
  return instant >= FIRST_INSTANT && instant <= LAST_INSTANT
}

function isHttpUrl (text: string): boolean {
  return /^https?:\/\/[^\s]+$/i.test(text) && URL.canParse(text)
}

/** The path of the first string with an unpaired surrogate: valid in JSON, storable in no database. */
function loneSurrogate (value: unknown, path: string): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : path
  if (value === null || typeof value !== 'object') return undefined
  for (const [name, inner] of Object.entries(value)) {
    const found = loneSurrogate(inner, path === '' ? name : `${path}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
}

/** The violation in words that name the field and the rule. */
function explain ({ instancePath, keyword, params, schema, message }: ErrorObject, part: HttpPart): string {
  const path = instancePath.slice(1).replaceAll('/', '.')
  const field = path === '' ? 'The body' : `${PART_NAMES[part]}${path}`
  switch (keyword) {
    case 'required': return `${PART_NAMES[part]}${join(path, params.missingProperty)} is required`
    case 'additionalProperties': return `${PART_NAMES[part]}${join(path, shown(params.additionalProperty))} is not known here`
    case 'type': return `${field} must be ${article(params.type)}`
    case 'enum': return `${field} must be one of ${(params.allowedValues as string[]).join(', ')}`
    case 'minLength': return `${field} must have at least ${params.limit} character${params.limit === 1 ? '' : 's'}`
    case 'maxLength': return `${field} must have at most ${params.limit} characters`
    case 'minItems': return `${field} must have at least ${params.limit} item${params.limit === 1 ? '' : 's'}`
    case 'maxItems': return `${field} must have at most ${params.limit} items`
    case 'uniqueItems': return `${field} must not have the same item twice`
    case 'minimum': return `${field} must be ${params.limit} or more`
    case 'maximum': return `${field} must be ${params.limit} or less`
    case 'pattern': return String(schema ?? params.pattern).includes('\\u0000')
      ? `${field} must not hold the character U+0000`
      : `${field} does not have the form ${params.pattern}`
    case 'format': return `${field} must be ${FORMATS[params.format as string] ?? params.format}`
    default: return `${field} ${message}`
  }
}

const PART_NAMES: Record<HttpPart, string> = { body: '', querystring: 'Query parameter ', params: 'Path parameter ', headers: 'Header ' }

const FORMATS: Record<string, string> = {
  'date-time': 'an RFC 3339 date and time with an offset, such as 2026-11-21T10:00:00Z, in the years 1 to 9999',
  uri: 'an http or https address'
}

function join (path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

/** A client's own word in our message: short, and printable. */
function shown (name: string): string {
  return JSON.stringify(name.length > 40 ? `${name.slice(0, 40)}…` : name)
}

function article (type: string | string[]): string {
  const [first, ...rest] = [type].flat()
  const words = /^[aeiou]/.test(first ?? '') ? `an ${first}` : `a ${first}`
  return [words, ...rest].join(' or ')
}
