import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { ValidationFailed, withProblem } from '../errors.ts'
import { problemOfHttpUrl } from './http-url.ts'
import { explainViolation, MAX_INT64, pointerOf, type HttpPart } from './validation-messages.ts'

/**
 * Validates requests against their schemas. Bodies are not coerced. The strings of paths and queries are first
 * converted to the schema's types, by the contract's narrow rules. Nothing is repaired, and only the first violation
 * is reported: an attacker could choose the cost of reporting all.
 */

interface Part { schema: PartSchema, httpPart?: string }
interface PartSchema { $ref?: string, properties?: Record<string, PropertySchema>, items?: PropertySchema }
interface PropertySchema extends PartSchema { type?: string, format?: string, maximum?: number }

type Data = Record<string, unknown>
type Result = { value: unknown } | { error: Error }
/** Returns the first violation, if there is one. */
type FindViolation = (data: unknown) => ErrorObject | undefined
type ValidatorCompiler = (part: Part) => (data: unknown) => Result

/**
 * Builds a Fastify validator compiler, which compiles one part of one route.
 *
 * @param schemas the named schemas, by their `$id`
 */
export function buildValidatorCompiler (schemas: Record<string, unknown>): ValidatorCompiler {
  const components = schemas as Record<string, PartSchema>
  const ajv = createAjv(components)

  return ({ schema, httpPart }) => {
    // Compiled at the first request: compiling all schemas would take a fifth of the start-up time.
    let compiled: ValidateFunction | undefined
    const findViolation: FindViolation = (data) =>
      (compiled ??= ajv.compile(schema))(data) ? undefined : compiled.errors![0]!
    const { properties = {} } = resolved(schema, components)
    const part = httpPart as HttpPart
    if (part === 'body') {
      const limitIds = idLimit(schema, components)
      return (data) => validateBody(findViolation, data as Data, limitIds)
    }
    const repeatable = Object.keys(properties).filter((name) => properties[name]?.type === 'array')
    return (data) => validate(findViolation, coerceStrings(data as Data, properties), part, repeatable)
  }
}

function resolved (schema: PartSchema, components: Record<string, PartSchema>): PartSchema {
  return schema.$ref === undefined ? schema : components[schema.$ref.replace('#', '')] ?? {}
}

function createAjv (components: Record<string, PartSchema>): Ajv {
  const ajv = new Ajv({
    coerceTypes: false,
    useDefaults: false,
    removeAdditional: false,
    allErrors: false,
    strict: true,
    // A test of the OpenAPI document validates all schemas; doing so at each start would take 100 ms.
    validateSchema: false,
    formats: {
      int64: true, 'date-time': isTimestamp, uri: (text: string) => problemOfHttpUrl(text) === undefined
    },
    keywords: ['example', 'x-enum-varnames', 'tagValues'],
    // A discriminator selects the schema whose rule a violation names. Otherwise, every violation would name the first.
    discriminator: true,
    verbose: true
  })
  for (const schema of Object.values(components)) ajv.addSchema(withoutMapping(schema))
  return ajv
}

interface Union { discriminator?: { propertyName: string, mapping?: Record<string, string> } }

/** Ajv knows no mapping of a discriminator. Messages take the values from `tagValues`. */
function withoutMapping (schema: PartSchema & Union): object {
  const { discriminator } = schema
  if (discriminator?.mapping === undefined) return schema
  const { propertyName, mapping } = discriminator
  return { ...schema, discriminator: { propertyName }, tagValues: Object.keys(mapping) }
}

function validate (findViolation: FindViolation, data: unknown, part: HttpPart, repeatable: string[] = []): Result {
  const error = findViolation(data)
  if (error === undefined) return { value: data }
  const value = valueAt(data, error.instancePath)
  const violation = { error, part, value, repeatable }
  return { error: withProblem(new ValidationFailed(explainViolation(violation)), pointerOf(violation), error.keyword) }
}

/** Returns the value that a JSON pointer names. */
function valueAt (data: unknown, pointer: string): unknown {
  let value = data
  for (const name of pointer.split('/').slice(1)) value = (value as Data)[name.replace(/~1/g, '/').replace(/~0/g, '~')]
  return value
}

function validateBody (findViolation: FindViolation, data: Data, limitIds: LimitIds | undefined): Result {
  const result = validate(findViolation, data, 'body')
  if ('error' in result) return result
  const field = findLoneSurrogate(data, '')
  if (field !== undefined) {
    const error = new ValidationFailed(`${field} must not contain one half of a surrogate pair`)
    return { error: withProblem(error, `/body/${field.replaceAll('.', '/')}`, 'pattern') }
  }
  return { value: limitIds === undefined ? data : limitIds(data) }
}

/** Replaces the ids of a value by `limitId`, in place. */
type LimitIds = (value: unknown) => unknown

/** Returns a function that replaces the ids in values of a schema, or `undefined` if there are none. */
function idLimit (schema: PropertySchema, components: Record<string, PartSchema>): LimitIds | undefined {
  if (schema.format === 'int64') return limitId
  const { properties = {}, items } = resolved(schema, components)
  const ofItem = items && idLimit(items, components)
  if (ofItem !== undefined) return (list) => Array.isArray(list) ? list.map(ofItem) : list
  const limits = Object.entries(properties).flatMap(([name, property]) => {
    const limit = idLimit(property, components)
    return limit === undefined ? [] : [{ name, limit }]
  })
  if (limits.length === 0) return undefined
  return (value) => {
    const members = value as Data | undefined
    for (const { name, limit } of limits) if (members?.[name] !== undefined) members[name] = limit(members[name])
    return value
  }
}

function limitId (id: unknown): unknown {
  return Number(id) > Number.MAX_SAFE_INTEGER ? NEVER_ASSIGNED : id
}

/** Digits without a leading zero. Ids are at most 2^63-1. */
const DIGITS = /^(0|[1-9][0-9]*)$/

/** Replaces all ids above 2^53-1, which are never assigned: rounded by JavaScript, they could match another row. */
const NEVER_ASSIGNED = Number.MAX_SAFE_INTEGER + 1

function coerceStrings (data: Data, properties: Record<string, PropertySchema>): Data {
  for (const name in data) {
    const schema = properties[name]
    if (schema === undefined) continue
    const value = data[name]
    if (schema.type === 'array') {
      data[name] = (Array.isArray(value) ? value : [value]).map((item) => coerceString(item, schema.items))
    } else {
      data[name] = coerceString(value, schema)
    }
  }
  return data
}

/** Converts a string to the type, or leaves it unchanged, in which case the schema rejects it. */
function coerceString (value: unknown, { type, maximum }: PropertySchema = {}): unknown {
  if (typeof value !== 'string') return value
  if (type === 'integer' && DIGITS.test(value)) {
    const number = Number(value)
    if (number <= Number.MAX_SAFE_INTEGER) return number
    // A smaller maximum of the schema explains more.
    const isId = value.length <= MAX_INT64.length && BigInt(value) <= BigInt(MAX_INT64)
    return maximum !== undefined || isId ? NEVER_ASSIGNED : value
  }
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true'
  return value
}

const TIMESTAMP = /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/
const FIRST_INSTANT = Date.parse('0001-01-01T00:00:00.000Z')
const LAST_INSTANT = Date.parse('9999-12-31T23:59:59.999Z')

/** Accepts RFC 3339 section 5.6, without leap seconds and within the years that both databases can store. */
function isTimestamp (text: string): boolean {
  const [, year, month, day] = TIMESTAMP.exec(text) ?? []
  if (year === undefined) return false
  const date = new Date(`${year}-${month}-${day}T00:00:00Z`)
  if (Number.isNaN(date.getTime()) || date.getUTCDate() !== Number(day)) return false
  const instant = Date.parse(text)
  return instant >= FIRST_INSTANT && instant <= LAST_INSTANT
}

/** Returns the path of the first string with an unpaired surrogate: valid JSON, but no database can store it. */
function findLoneSurrogate (value: unknown, path: string): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : path
  if (value === null || typeof value !== 'object') return undefined
  for (const [name, inner] of Object.entries(value)) {
    const found = findLoneSurrogate(inner, path === '' ? name : `${path}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
}
