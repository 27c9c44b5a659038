import { Type, type Static, type TSchema, type TUnsafe } from '@sinclair/typebox'

/**
 * The pieces that all resources' schemas are made of. A schema with an `$id` is a component of the
 * OpenAPI document and is referred to, never pasted.
 */

/** A reference to a component that keeps its static type. */
export function ref<T extends TSchema> (schema: T, options: { description?: string } = {}): TUnsafe<Static<T>> {
  return Type.Unsafe<Static<T>>({ ...options, $ref: `${schema.$id}#` })
}

/** An id in a path, query or body. No `maximum`: JavaScript cannot print 2^63-1. */
export const Id = (description: string, example = 7) =>
  Type.Integer({ format: 'int64', minimum: 1, description, example })

/** Text without U+0000, which PostgreSQL cannot store. Lengths count code points. */
export const Text = (minLength: number, maxLength: number, description: string, example: string) =>
  Type.String({ minLength, maxLength, pattern: '^[^\\u0000]*$', description, example })

/** RFC 3339 with `T` and an offset; answered in UTC with milliseconds. */
export const Timestamp = (description: string, example = '2026-11-21T10:00:00.000Z') =>
  Type.String({ format: 'date-time', description, example })

/** An enumeration as generators want it: `enum`, not `anyOf` of constants. */
export const StringEnum = <T extends string>(values: readonly T[], options: { $id?: string, description: string, default?: T, example?: T }) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], ...options })

/** Request bodies are closed: an unknown or read-only field is an error, not ignored. */
export const NO_ADDITIONAL_PROPERTIES = { additionalProperties: false } as const

export const PET_STATUSES = ['available', 'pending', 'sold'] as const

export const PetStatusSchema = StringEnum(PET_STATUSES, {
  $id: 'PetStatus',
  description: 'Where a pet stands: for sale, on hold, or gone.',
  example: 'available'
})
export type PetStatus = Static<typeof PetStatusSchema>

export const ErrorSchema = Type.Object({
  code: Type.String({ description: 'Machine-readable code from a closed list' }),
  message: Type.String({ description: 'What is wrong and what would be right, for a person' }),
  status: Type.Integer({ description: 'The HTTP status, repeated' })
}, { $id: 'Error', ...NO_ADDITIONAL_PROPERTIES, description: 'Every error answer, and nothing more than this.' })

/** Lists are read in pages: `limit`, and the opaque `cursor` of the `Link` header. */
export const PageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'How many records to answer at most', example: 20 })),
  cursor: Type.Optional(Type.String({ pattern: '^[0-9a-z]{1,10}$', description: 'Where the page begins: taken from the `Link` header of the page before', example: 'k' }))
}

/** Lists go by id, upwards or downwards. */
export const SortQuery = {
  sort: Type.Optional(StringEnum(['id', '-id'], { description: 'Order by id: `id` upwards, `-id` downwards', default: 'id', example: 'id' }))
}

/** An answer without a body. */
export const NoContent = Type.Null({ description: 'Done; there is nothing to say.' })

/** A field of a merge patch that `null` clears. OpenAPI 3.0 says `nullable`, and so does our validator. */
export const Nullable = <T extends TSchema>(schema: T): TUnsafe<Static<T> | null> =>
  Type.Unsafe<Static<T> | null>({ ...schema, nullable: true })
