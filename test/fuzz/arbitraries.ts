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
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  items?: Schema
  required?: string[]
  properties?: Record<string, Schema>
}

export type Resolve = (schema: Schema) => Schema

/** Stands for the id of a record that was made before: which one is found out when the request is sent. */
export interface Reference { kind: string, n: number, cursor?: boolean }

export function isReference (value: unknown): value is Reference {
  return typeof value === 'object' && value !== null && 'kind' in value && 'n' in value
}

/** Ids that nobody has, on either database. */
const NOBODY = ['4611686018427387904', '9007199254740991', '9223372036854775807', '900719925474099']
const NO_MESSAGE = 'msg_zzzzzzzzzzzzzzzzzzzzzzzzzz'

/** Values that the schema takes. Ids are mostly those of records, by the name that they go by. */
export function schemaArbitrary (schema: Schema, resolve: Resolve, name: string, path: string): fc.Arbitrary<unknown> {
  const found = { ...resolve(schema), ...schema.nullable === true ? { nullable: true } : {} }
  const value = plainArbitrary(found, resolve, name, path)
  return found.nullable === true ? fc.oneof({ weight: 4, arbitrary: value }, { weight: 1, arbitrary: fc.constant(null) }) : value
}

function plainArbitrary (schema: Schema, resolve: Resolve, name: string, path: string): fc.Arbitrary<unknown> {
  const kind = kindOf(name, path)
  if (kind !== undefined && schema.type !== 'array') return reference(kind, name)
  if (name === 'cursor') return cursor(path)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  switch (schema.type) {
    case 'integer': return integer(schema)
    case 'boolean': return fc.boolean()
    case 'string': return text(schema)
    case 'array': {
      const items = schemaArbitrary(schema.items!, resolve, name, path)
      const lengths = { minLength: Math.max(1, schema.minItems ?? 0), maxLength: Math.min(schema.maxItems ?? 5, 5) }
      return schema.uniqueItems === true ? fc.uniqueArray(items, { ...lengths, selector: (item) => JSON.stringify(item) }) : fc.array(items, lengths)
    }
    default: {
      const { properties = {}, required = [] } = schema
      return fc.record(Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, schemaArbitrary(inner, resolve, name, path)])), { requiredKeys: required })
    }
  }
}

/** `petId` names a pet, and so does `id` on the list of pets. */
function kindOf (name: string, path: string): string | undefined {
  if (name === 'id') return kindOfPath(path)
  const [, kind] = /^(.+)Id$/.exec(name) ?? []
  return kind
}

/** What a collection or an item of it is called by its ids. */
export function kindOfPath (path: string): string {
  const [last = ''] = path.split('/').filter((segment) => segment !== '' && !segment.startsWith('{')).slice(-1)
  const singular = last.endsWith('ies') ? `${last.slice(0, -3)}y` : last.replace(/s$/, '')
  return singular === 'inventory' ? 'pet' : singular
}

function reference (kind: string, name: string): fc.Arbitrary<unknown> {
  const known = fc.nat(50).map((n): Reference => ({ kind, n }))
  // In a body, a number beyond what a double holds is some other number, and nobody's id either.
  const unknown = kind === 'message' ? fc.constant(NO_MESSAGE) : fc.constantFrom(...NOBODY).map((digits) => name.endsWith('Id') ? Number(digits) > Number.MAX_SAFE_INTEGER ? 2 ** 60 : Number(digits) : digits)
  return fc.oneof({ weight: 9, arbitrary: known }, { weight: 1, arbitrary: unknown })
}

function cursor (path: string): fc.Arbitrary<unknown> {
  const ends = fc.constantFrom('0', 'zzzzzzzzzz')
  // A message's position is nobody's business.
  return kindOfPath(path) === 'message' ? ends : fc.oneof(ends, fc.nat(50).map((n): Reference => ({ kind: kindOfPath(path), n, cursor: true })))
}

function integer ({ minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: Schema): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: minimum, max: Math.min(maximum, minimum + 20) }) },
    { weight: 1, arbitrary: fc.constantFrom(minimum, maximum) },
    { weight: 1, arbitrary: fc.integer({ min: minimum, max: maximum }) }
  )
}

function text ({ format, pattern, minLength = 0, maxLength = 50 }: Schema): fc.Arbitrary<string> {
  if (format === 'date-time') return timestamp
  if (format === 'uri') return fc.constantFrom('https://pets.example/hook', 'http://pets.example:8080/a?b=c')
  if (pattern !== undefined && !pattern.includes('\\u0000')) return fc.stringMatching(new RegExp(pattern))
  const unit = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((character) => character !== '\0' && character.isWellFormed())
  return fc.oneof(
    { weight: 6, arbitrary: fc.string({ unit, minLength, maxLength: Math.min(maxLength, minLength + 20) }) },
    { weight: 1, arbitrary: fc.constantFrom('x'.repeat(maxLength), '😀'.repeat(maxLength), 'x'.repeat(minLength)) },
    { weight: 2, arbitrary: fc.constantFrom('\'; DROP TABLE pets; --', '"quoted"', '\\', '\u2028\u2029\u007f\u0001', '%s %n %{x}', '  ', '<script>', 'ﬁ ß İ ı', '\u202e\ufeff', '[]', 'null', '{"a": 1}', 'e\u0301').filter((text) => [...text].length >= minLength && [...text].length <= maxLength) }
  )
}

/** RFC 3339, in every dress: offsets, fractions of any length, the edges of the calendar. */
const timestamp = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(fc.date({ min: new Date('1000-01-01T00:00:00Z'), max: new Date('9998-01-01T00:00:00Z'), noInvalidDate: true }), fc.constantFrom('Z', '+02:00', '-11:30', '+00:00'), fc.constantFrom('', '.5', '.123', '.123456789')).map(([date, offset, fraction]) =>
    `${date.toISOString().slice(0, 19)}${fraction}${offset}`)
  },
  { weight: 1, arbitrary: fc.constantFrom('0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z', '2028-02-29T12:00:00Z', '0001-01-01T01:00:00+01:00', '0099-06-01T00:00:00.001Z') }
)

/** Values that the schema refuses. */
export function invalidValue (schema: Schema, resolve: Resolve): fc.Arbitrary<unknown> {
  const found = { ...resolve(schema), ...schema }
  const values: unknown[] = [{}, [], [1]]
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
      values.push('', 'tomorrow', '2026-02-30T00:00:00Z', '2026-01-01', '2026-01-01T00:00:00', '2026-01-01 00:00:00Z', '2026-06-30T23:59:60Z', '2026-01-01T24:00:00Z', '0000-01-01T00:00:00Z', '0001-01-01T00:00:00+01:00', '9999-12-31T23:59:59-01:00', '10000-01-01T00:00:00Z', '2026-13-01T00:00:00Z')
    }
    if (found.format === 'uri') values.push('', 'pets.example', 'ftp://pets.example', 'http://')
  }
  if (found.type === 'array') values.splice(1, 2, 5, 'text', [], [{}])
  return fc.constantFrom(...values)
}
