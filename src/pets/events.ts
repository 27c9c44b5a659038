import { Type } from '@sinclair/typebox'
import { defineEvents } from '../events/define-events.ts'
import { ref } from '../http/common-schemas.ts'
import { InventoryItemSchema, PetSchema } from './schemas.ts'

const pet = { pet: ref(PetSchema) }

export const petEvents = defineEvents('pet', {
  created: pet,
  // The entry of a counted pet shows the pet's status.
  updated: { ...pet, inventory: Type.Optional(ref(InventoryItemSchema)) },
  deleted: pet
})
