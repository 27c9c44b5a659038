import { Type } from '@sinclair/typebox'
import { defineEvents } from '../events/define-events.ts'
import { NO_ADDITIONAL_PROPERTIES, Id, PageQuery, ref } from '../http/common-schemas.ts'
import { InventoryItemSchema, PetStatusSchema } from '../pets/schemas.ts'

export const InventoryUpdateSchema = Type.Object({
  quantity: Type.Integer({ minimum: 0, maximum: 2147483647, description: 'The new stock count', example: 12 })
}, { $id: 'InventoryUpdate', ...NO_ADDITIONAL_PROPERTIES, description: 'The result of a stock count.' })

export const inventoryEvents = defineEvents('inventory', {
  counted: {
    inventory: ref(InventoryItemSchema),
    previousQuantity: Type.Integer({
      format: 'int64', description: 'Previous stock count, 0 before the first count', example: 0
    })
  }
})

export const InventoryParams = Type.Object({ petId: Id('Id of the pet') }, NO_ADDITIONAL_PROPERTIES)

export const InventoryQuery = Type.Object({
  status: Type.Optional(ref(PetStatusSchema, { description: 'Only entries with this status' })),
  petId: Type.Optional(Type.Array(Id('Id of a pet'), {
    minItems: 1,
    maxItems: 100,
    description: 'Only the entries of these pets. Repeat the parameter for each id, up to 100 times'
  })),
  ...PageQuery
}, NO_ADDITIONAL_PROPERTIES)
