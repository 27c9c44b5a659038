import { Type, type Static } from '@sinclair/typebox'
import { NO_ADDITIONAL_PROPERTIES, Id, PageQuery, PetStatusSchema, ref, SortQuery, Text } from '../http/common-schemas.ts'

const name = Text(1, 255, "The animal's name", 'Rex')
const categoryId = Id('Id of the category the animal belongs to', 3)
const status = ref(PetStatusSchema)

export const NewPetSchema = Type.Object({
  name,
  categoryId,
  status: Type.Optional(status)
}, { $id: 'NewPet', ...NO_ADDITIONAL_PROPERTIES, description: 'A pet to be offered. It is `available` unless you say otherwise.' })
export type NewPet = Static<typeof NewPetSchema>

export const PetUpdateSchema = Type.Partial(Type.Object({ name, categoryId, status }), {
  $id: 'PetUpdate',
  ...NO_ADDITIONAL_PROPERTIES,
  description: 'A merge patch of a pet (RFC 7396): the fields to change.'
})
export type PetUpdate = Static<typeof PetUpdateSchema>

export const PetSchema = Type.Object({
  id: Id('Unique identifier assigned on creation'),
  name,
  categoryId,
  status: Type.Optional(status)
}, { $id: 'Pet', description: 'An animal of the store.' })
export type Pet = Required<Static<typeof PetSchema>>

export const PetsSchema = Type.Array(ref(PetSchema), { $id: 'Pets', description: 'Pets, a page of them.' })

export const PetParams = Type.Object({ petId: Id('Id of the pet') }, NO_ADDITIONAL_PROPERTIES)

export const PetQuery = Type.Object({
  status: Type.Optional(ref(PetStatusSchema, { description: 'Only pets of this status' })),
  categoryId: Type.Optional(Id('Only pets of this category', 3)),
  id: Type.Optional(Type.Array(Id('Id of a pet'), { minItems: 1, maxItems: 100, description: 'Only these pets; repeat the parameter, up to 100 times' })),
  ...PageQuery,
  ...SortQuery
}, NO_ADDITIONAL_PROPERTIES)
