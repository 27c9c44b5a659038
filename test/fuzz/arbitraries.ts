import fc from 'fast-check'

export interface Schema {
  $ref?: string
  type?: string
  format?: string
  pattern?: string
  enum?: unknown[]
  nullable?: boolean
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minProperties?: number
  maxProperties?: number
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  items?: Schema
  required?: string[]
  properties?: Record<string, Schema>
}

export type Resolve = (schema: Schema) => Schema

/** A placeholder for the id of a record that an earlier request created. The target resolves it when it sends. */
export interface Reference { kind: string, n: number, cursor?: boolean }

export function isReference (value: unknown): value is Reference {
  return typeof value === 'object' && value !== null && 'kind' in value && 'n' in value
}

/** Ids that no record has, on either database. */
const UNUSED_IDS = ['4611686018427387904', '9007199254740991', '9223372036854775807', '900719925474099']
const UNUSED_MESSAGE_ID = 'msg_zzzzzzzzzzzzzzzzzzzzzzzzzz'

/** Generates values that match the schema. Most ids are references to records of the kind that the name says. */
export function schemaArbitrary (schema: Schema, resolve: Resolve, name: string, path: string): fc.Arbitrary<unknown> {
  const found = { ...resolve(schema), ...schema.nullable === true ? { nullable: true } : {} }
  const value = plainArbitrary(found, resolve, name, path)
  if (found.nullable !== true) return value
  return fc.oneof({ weight: 4, arbitrary: value }, { weight: 1, arbitrary: fc.constant(null) })
}

function plainArbitrary (schema: Schema, resolve: Resolve, name: string, path: string): fc.Arbitrary<unknown> {
  const kind = kindOf(name, path)
  if (kind !== undefined && schema.type !== 'array') return reference(kind, name)
  if (name === 'cursor') return cursor(path)
  if (name in HARMLESS) return HARMLESS[name]!
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  switch (schema.type) {
    case 'integer': return integer(schema)
    case 'boolean': return fc.boolean()
    case 'string': return text(schema)
    case 'array': {
      const items = schemaArbitrary(schema.items!, resolve, name, path)
      const lengths = { minLength: Math.max(1, schema.minItems ?? 0), maxLength: Math.min(schema.maxItems ?? 5, 5) }
      if (schema.uniqueItems !== true) return fc.array(items, lengths)
      return fc.uniqueArray(items, { ...lengths, selector: (item) => JSON.stringify(item) })
    }
    default: {
      const { properties = {}, required = [], minProperties, maxProperties } = schema
      const members = Object.entries(properties).map(([name, inner]) =>
        [name, schemaArbitrary(inner, resolve, name, path)] as const)
      if (minProperties === 1 && maxProperties === 1) {
        return fc.oneof(...members.map(([name, value]) => fc.record({ [name]: value })))
      }
      return fc.record(Object.fromEntries(members), { requiredKeys: required })
    }
  }
}

/**
 * Values of the lab, by the names of their members, that leave the other requests of a sequence alone: faults of
 * webhooks, which nothing delivers and which last, samples without pets, whose ids would be unknown here, and limits
 * that nothing reaches. A time is in the past, because two services would move their clocks by a different number of
 * seconds.
 */
const HARMLESS: Record<string, fc.Arbitrary<unknown>> = {
  operation: fc.constant('webhook'),
  effect: fc.constantFrom(
    { type: 'delay', ms: 5 }, { type: 'lose_answer' }, { type: 'reset' }, { type: 'corrupt', how: 'duplicate' }),
  forSeconds: fc.constant(2_592_000),
  rate: fc.constantFrom(0.3, 1),
  pets: fc.constant(0),
  requests: fc.constant(1_000_000),
  fields: fc.constant('none'),
  to: fc.constant('2020-01-01T00:00:00Z')
}

/** Returns the kind of record that a name refers to: `petId` refers to a pet, as does `id` in the list of pets. */
function kindOf (name: string, path: string): string | undefined {
  if (name === 'id') return kindOfPath(path)
  const [, kind] = /^(.+)Id$/.exec(name) ?? []
  return kind
}

/** Returns the kind of the records at a path. */
export function kindOfPath (path: string): string {
  const [last = ''] = path.split('/').filter((segment) => segment !== '' && !segment.startsWith('{')).slice(-1)
  const singular = last.endsWith('ies') ? `${last.slice(0, -3)}y` : last.replace(/s$/, '')
  return singular === 'inventory' ? 'pet' : singular
}

function reference (kind: string, name: string): fc.Arbitrary<unknown> {
  const known = fc.nat(50).map((n): Reference => ({ kind, n }))
  // In a body, JSON rounds a number beyond 2 ** 53. No record has the rounded id either.
  const numberOf = (digits: string): number => Number(digits) > Number.MAX_SAFE_INTEGER ? 2 ** 60 : Number(digits)
  const unknown = kind === 'message'
    ? fc.constant(UNUSED_MESSAGE_ID)
    : fc.constantFrom(...UNUSED_IDS).map((digits) => name.endsWith('Id') ? numberOf(digits) : digits)
  return fc.oneof({ weight: 9, arbitrary: known }, { weight: 1, arbitrary: unknown })
}

function cursor (path: string): fc.Arbitrary<unknown> {
  const ends = fc.constantFrom('0', 'zzzzzzzzzz')
  // The cursor of a list of messages is opaque, so the target cannot compute it from an id.
  const kind = kindOfPath(path)
  return kind === 'message' ? ends : fc.oneof(ends, fc.nat(50).map((n): Reference => ({ kind, n, cursor: true })))
}

function integer ({ minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: Schema): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: minimum, max: Math.min(maximum, minimum + 20) }) },
    { weight: 1, arbitrary: fc.constantFrom(minimum, maximum) },
    { weight: 1, arbitrary: fc.integer({ min: minimum, max: maximum }) }
  )
}

/** Texts that break careless quoting, encoding or formatting. */
const HOSTILE_TEXTS = [
  '\'; DROP TABLE pets; --', '"quoted"', '\\', '\u2028\u2029\u007f\u0001', '%s %n %{x}', '  ', '<script>', 'ﬁ ß İ ı',
  '\u202e\ufeff', '[]', 'null', '{"a": 1}', 'e\u0301'
]

function text ({ format, pattern, minLength = 0, maxLength = 50 }: Schema): fc.Arbitrary<string> {
  if (format === 'date-time') return timestamp
  if (format === 'uri') return fc.constantFrom('https://pets.example/hook', 'http://pets.example:8080/a?b=c')
  if (pattern !== undefined && !pattern.includes('\\x00')) return fc.stringMatching(new RegExp(pattern))
  const unit = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 })
    .filter((character) => character !== '\0' && character.isWellFormed())
  const fits = (text: string): boolean => [...text].length >= minLength && [...text].length <= maxLength
  return fc.oneof(
    { weight: 6, arbitrary: fc.string({ unit, minLength, maxLength: Math.min(maxLength, minLength + 20) }) },
    { weight: 1, arbitrary: fc.constantFrom('x'.repeat(maxLength), '😀'.repeat(maxLength), 'x'.repeat(minLength)) },
    { weight: 2, arbitrary: fc.constantFrom(...HOSTILE_TEXTS).filter(fits) }
  )
}

/** RFC 3339 timestamps with offsets, fractions of any length, and the edges of the calendar. */
const timestamp = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(
      fc.date({ min: new Date('1000-01-01T00:00:00Z'), max: new Date('9998-01-01T00:00:00Z'), noInvalidDate: true }),
      fc.constantFrom('Z', '+02:00', '-11:30', '+00:00'),
      fc.constantFrom('', '.5', '.123', '.123456789')
    ).map(([date, offset, fraction]) => `${date.toISOString().slice(0, 19)}${fraction}${offset}`)
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z', '2028-02-29T12:00:00Z', '0001-01-01T01:00:00+01:00',
      '0099-06-01T00:00:00.001Z'
    )
  }
)

/** Generates values that do not match the schema. */
export function invalidValue (schema: Schema, resolve: Resolve): fc.Arbitrary<unknown> {
  const found = { ...resolve(schema), ...schema }
  const values: unknown[] = found.type === 'array'
    ? [{}, 5, 'text', [], ...isEmptyObjectValid(resolve(found.items!)) ? [] : [[{}]]]
    : [[], [1], ...isEmptyObjectValid(found) ? [] : [{}]]
  if (found.nullable !== true) values.push(null)
  if (found.enum !== undefined) values.push('', 'nothing', 5, true, String(found.enum[0]).toUpperCase())
  else if (found.type === 'integer') {
    values.push('5', '', 1.5, true, -1)
    if (found.minimum !== undefined) values.push(found.minimum - 1)
    if (found.maximum !== undefined) values.push(found.maximum + 1, 1e300)
  } else if (found.type === 'boolean') values.push('true', 0, 1, '')
  else if (found.type === 'string') {
    values.push(5, true, 'a\0b', '\ud800', 'x\udfff')
    if (found.minLength === 1) values.push('')
    if (found.maxLength !== undefined) values.push('x'.repeat(found.maxLength + 1), '😀'.repeat(found.maxLength + 1))
    if (found.format === 'date-time') {
      values.push(
        '', 'tomorrow', '2026-02-30T00:00:00Z', '2026-01-01', '2026-01-01T00:00:00', '2026-01-01 00:00:00Z',
        '2026-06-30T23:59:60Z', '2026-01-01T24:00:00Z', '0000-01-01T00:00:00Z', '0001-01-01T00:00:00+01:00',
        '9999-12-31T23:59:59-01:00', '10000-01-01T00:00:00Z', '2026-13-01T00:00:00Z'
      )
    }
    if (found.format === 'uri') values.push('', 'pets.example', 'ftp://pets.example', 'http://')
  }
  return fc.constantFrom(...values)
}

/** Whether an object without members matches the schema, as that of a search without conditions. */
function isEmptyObjectValid ({ type, required = [], minProperties = 0 }: Schema): boolean {
  return type === 'object' && required.length === 0 && minProperties === 0
}
