import type { Schema } from './document.ts'

/** Keywords of a schema whose value is a schema, an array of schemas or schemas by name. */
const SUBSCHEMAS = ['items', 'contentSchema', 'additionalProperties']
const SUBSCHEMA_LISTS = ['oneOf', 'anyOf', 'allOf']

/** Members of a document whose values are no part of it, whatever they look like. */
const VALUES = new Set(['example', 'examples', 'value', 'x-error-codes'])

/** Returns an OpenAPI document whose schemas are JSON Schema 2020-12 instead of the dialect of OpenAPI 3.0. */
export function convertSchemas<T> (document: T): T {
  return convertPart(document, '') as T
}

function convertPart (part: unknown, name: string): unknown {
  if (Array.isArray(part)) return part.map((item) => convertPart(item, ''))
  if (part === null || typeof part !== 'object') return part
  if (name === 'schema' || name === 'itemSchema') return toJsonSchema(part)
  return Object.fromEntries(Object.entries(part).map(([member, value]) => {
    if (name === 'components' && member === 'schemas') return [member, mapSchemas(value as Record<string, Schema>)]
    if (VALUES.has(member) && name !== 'components') return [member, value]
    return [member, convertPart(value, member)]
  }))
}

function mapSchemas (schemas: Record<string, Schema>): Record<string, Schema> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, toJsonSchema(schema)]))
}

/** Converts a schema of OpenAPI 3.0 to JSON Schema 2020-12: types with null, constants and lists of examples. */
export function toJsonSchema (schema: Schema): Schema {
  const { nullable, example, enum: values, ...rest } = schema as Schema & { nullable?: boolean }
  const converted: Record<string, unknown> = { ...rest }
  if (nullable === true) converted['type'] = [rest.type, 'null']
  if (values !== undefined) {
    if (values.length === 1) converted['const'] = values[0]
    else converted['enum'] = nullable === true ? [...values, null] : values
  }
  if (example !== undefined) converted['examples'] = [example]
  if (rest.properties !== undefined) converted['properties'] = mapSchemas(rest.properties)
  for (const name of SUBSCHEMAS) {
    const inner = converted[name]
    if (inner !== null && typeof inner === 'object') converted[name] = toJsonSchema(inner)
  }
  for (const name of SUBSCHEMA_LISTS) {
    const list = converted[name] as Schema[] | undefined
    if (list !== undefined) converted[name] = list.map(toJsonSchema)
  }
  return converted
}
