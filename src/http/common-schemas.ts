import {
  Type, TypeGuard, type Static, type TOptional, type TProperties, type TSchema, type TUnsafe
} from '@sinclair/typebox'
import { describedPattern } from './validation-messages.ts'

/**
 * Parts of the schemas of all resources. A schema with an `$id` is a component of the OpenAPI document: other schemas
 * refer to it and never copy it.
 */

/** Returns a reference to a component, with the static type of the component. */
export function ref<T extends TSchema> (schema: T, options: { description?: string } = {}): TUnsafe<Static<T>> {
  return Type.Unsafe<Static<T>>({ ...options, $ref: `${schema.$id}#` })
}

/** Returns the schema of an array of a component. */
export const arrayOf = <T extends TSchema>(schema: T) => Type.Array(ref(schema))

/**
 * Defines an id in a path, query or body. Has no `maximum`: JavaScript cannot print 2^63-1. The description tells
 * generators' users that a double holds every id.
 */
export const Id = (description: string, example = 7) =>
  Type.Integer({ format: 'int64', minimum: 1, description: `${description}; never above 2^53 - 1`, example })

/** RE2 and PCRE know this escape, but not that of JSON. */
const NO_NUL = describedPattern('^[^\\x00]*$', 'not contain the character U+0000')

/** Defines text without U+0000, which PostgreSQL cannot store. Lengths count code points. */
export const Text = (minLength: number, maxLength: number, description: string, example: string) =>
  Type.String({ minLength, maxLength, pattern: NO_NUL, description, example })

/** Defines a number of things, 0 or more. */
export const NumberOf = (things: string, example: number) =>
  Type.Integer({ minimum: 0, description: `Number of ${things}`, example })

/** Defines an RFC 3339 timestamp with `T` and an offset. Responses have it in UTC with milliseconds. */
export const Timestamp = (description?: string, example = '2026-11-21T10:00:00.000Z') =>
  Type.String({ format: 'date-time', ...description === undefined ? {} : { description }, example })

interface StringEnumOptions<T> { $id?: string, description?: string, example?: T, 'x-enum-varnames'?: string[] }

/** Defines an enumeration by `enum`, which code generators handle better than `anyOf` with constants. */
export const StringEnum = <T extends string>(values: readonly T[], options: StringEnumOptions<T> = {}) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], ...options })

/** Makes an unknown or read-only field of a request body an error. */
export const NO_ADDITIONAL_PROPERTIES = { additionalProperties: false } as const

/** Returns those members of an object or array that are schemas with an `$id`. */
export function namedSchemas (schemas: object): TSchema[] {
  return Object.values(schemas)
    .filter((value): value is TSchema => (value as Partial<TSchema> | undefined)?.$id !== undefined)
}

/** The paging parameters of lists. */
export const PageQuery = {
  limit: Type.Optional(Type.Integer({
    minimum: 1, maximum: 100, default: 20, description: 'Maximum number of records to return', example: 20
  })),
  cursor: Type.Optional(Type.String({
    pattern: describedPattern('^[0-9a-z]{1,11}$', 'be the cursor of a Link header, 1 to 11 characters 0-9 and a-z'),
    description: 'Start of the page: the `cursor` of a `Link` header',
    example: '0'
  }))
}

/** Generators would name the constants after the values, and no language has a constant `-id`. */
export const SortOrderSchema = StringEnum(['id', '-id'], {
  $id: 'SortOrder',
  description: 'Sort order: `id` is ascending, `-id` descending.',
  example: 'id',
  'x-enum-varnames': ['Ascending', 'Descending']
})

/** The sort parameter of lists, which are ordered by id. */
const SortQuery = {
  sort: Type.Optional(ref(SortOrderSchema, { description: 'Sort order. Default: `id`, ascending' }))
}

/** Returns the schema of a list's query: the filters of the list, and the parameters that all lists have. */
export const ListQuery = <Filters extends TProperties>(filters: Filters) =>
  Type.Object({ ...filters, ...PageQuery, ...SortQuery }, NO_ADDITIONAL_PROPERTIES)

/** The schema of a 204 response. */
export const NoContent = Type.Null({ description: 'Success; the response has no body.' })

/** The fields of a merge patch: `null` clears those that are optional. */
type PatchFields<Fields extends TProperties> = {
  [Name in keyof Fields]: Fields[Name] extends TOptional<TSchema> ? TUnsafe<Static<Fields[Name]> | null> : Fields[Name]
}

/**
 * Defines a merge patch of the fields of a record. An optional field is one that `null` clears: one that has a default
 * in the model is passed without `Type.Optional`. `note` follows the description.
 */
export const MergePatch = <Fields extends TProperties>($id: string, fields: Fields, note = '') => {
  // OpenAPI 3.0 and Ajv both call it `nullable`.
  const patched = Object.entries(fields).map(([name, schema]) =>
    [name, TypeGuard.IsOptional(schema) ? { ...schema, nullable: true } : schema])
  return Type.Partial(Type.Object(Object.fromEntries(patched) as PatchFields<Fields>), {
    $id, ...NO_ADDITIONAL_PROPERTIES, description: `A JSON merge patch (RFC 7396) with the fields to change.${note}`
  })
}
