import type { DocumentedSchema, Schema } from './documented-schemas.ts'

type Corruption = 'wrong_type' | 'missing_field' | 'unknown_enum' | 'unknown_field'

/**
 * Returns a body that differs from the document in one way, at the first place where it can differ so.
 *
 * @returns `undefined` for a body without such a place, such as an empty list
 */
export function corrupted (body: string, how: string, documented: DocumentedSchema): string | undefined {
  // Lines of JSON stay valid without the last line end.
  if (how === 'invalid_json') return body.trimEnd().slice(0, -1)
  const { schema } = documented
  if (schema === undefined) return undefined
  const holder = { body: JSON.parse(body) as unknown }
  return breakMember(holder, 'body', schema, how as Corruption, documented) ? JSON.stringify(holder.body) : undefined
}

type Holder = Record<string, unknown>

/** Breaks a value, which is a member of another one, or a part of it. @returns whether anything could be broken */
function breakMember (
  holder: Holder, name: string, reference: Schema, how: Corruption, documented: DocumentedSchema
): boolean {
  const value = holder[name]
  const schema = variantFor(value, documented.resolve(reference), documented)
  if (Array.isArray(value)) {
    const items = schema.items
    if (items !== undefined && value.length > 0) {
      return breakMember(value as unknown as Holder, '0', items, how, documented)
    }
    if (how !== 'wrong_type') return false
    holder[name] = {}
    return true
  }
  if (value !== null && typeof value === 'object') return breakObject(value as Holder, schema, how, documented)
  if (how === 'unknown_enum' && schema.enum !== undefined) {
    holder[name] = typeof value === 'number' ? -1 : 'unknown'
    return true
  }
  if (how !== 'wrong_type') return false
  holder[name] = typeof value === 'string' ? 0 : String(value)
  return true
}

function breakObject (value: Holder, schema: Schema, how: Corruption, documented: DocumentedSchema): boolean {
  const { required = [], properties = {} } = schema
  // An order requires no member, but its first one is always there.
  const [first] = [...required, ...Object.keys(properties)].filter((name) => name in value)
  if (how === 'missing_field' && first !== undefined) {
    delete value[first]
    return true
  }
  if (how === 'unknown_field') {
    value['unknown'] = 'unknown'
    return true
  }
  return Object.keys(value).some((name) =>
    properties[name] !== undefined && breakMember(value, name, properties[name], how, documented))
}

/** Returns the schema of a union that the value names by its discriminator. */
function variantFor (value: unknown, schema: Schema, { resolve }: DocumentedSchema): Schema {
  const { oneOf, discriminator } = schema
  if (oneOf === undefined || discriminator === undefined) return schema
  const tag = (value as Holder | null)?.[discriminator.propertyName]
  const variant = oneOf.map(resolve).find(({ properties }) =>
    properties?.[discriminator.propertyName]?.enum?.includes(tag))
  return variant ?? schema
}
