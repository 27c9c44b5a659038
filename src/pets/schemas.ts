import { Type, type Static } from '@sinclair/typebox'
import { NO_ADDITIONAL_PROPERTIES, Id, ListQuery, MergePatch, ref, StringEnum, Text } from '../http/common-schemas.ts'

export const PET_STATUSES = ['available', 'pending', 'sold'] as const

export const PetStatusSchema = StringEnum(PET_STATUSES, {
  $id: 'PetStatus',
  description: 'Status of a pet: for sale, on hold or sold.',
  example: 'available'
})
export type PetStatus = Static<typeof PetStatusSchema>

const fields = {
  name: Text(1, 255, "The pet's name", 'Felix'),
  categoryId: Id('Id of the category that the pet belongs to', 2)
}
const status = ref(PetStatusSchema)

export const NewPetSchema = Type.Object({ ...fields, status: Type.Optional(status) }, {
  $id: 'NewPet', ...NO_ADDITIONAL_PROPERTIES, description: 'A pet to create. Its status is `available` by default.'
})
export type NewPet = Static<typeof NewPetSchema>

export const PetUpdateSchema = MergePatch('PetUpdate', { ...fields, status })
export type PetUpdate = Static<typeof PetUpdateSchema>

export const PetSchema = Type.Object({
  id: Id('Unique identifier assigned on creation'),
  ...fields,
  status: Type.Optional(status)
}, { $id: 'Pet', description: 'A pet that the store offers.' })
export type Pet = Static<typeof PetSchema> & { status: PetStatus }

export const PetsSchema = Type.Array(ref(PetSchema), { $id: 'Pets', description: 'A page of pets.' })

/** Events of pets show it, too. */
export const InventoryItemSchema = Type.Object({
  petId: Id('Id of the pet that the entry counts'),
  quantity: Type.Integer({ format: 'int64', description: 'Current stock count', example: 12 }),
  status: ref(PetStatusSchema, { description: 'Status of the entry, which is the status of the pet' })
}, { $id: 'InventoryItem', description: 'The stock of a pet that has been counted.' })
export type InventoryItem = Static<typeof InventoryItemSchema>

export const PetParams = Type.Object({ petId: Id('Id of the pet') }, NO_ADDITIONAL_PROPERTIES)

export const PetQuery = ListQuery({
  status: Type.Optional(ref(PetStatusSchema, { description: 'Only pets with this status' })),
  categoryId: Type.Optional(Id('Only pets in this category', 2)),
  id: Type.Optional(Type.Array(Id('Id of a pet'), {
    minItems: 1, maxItems: 100, description: 'Only these pets. Repeat the parameter for each id, up to 100 times'
  }))
})
