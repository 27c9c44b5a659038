import { Type, type Static } from '@sinclair/typebox'
import { defineEvents } from '../events/define-events.ts'
import {
  NO_ADDITIONAL_PROPERTIES, arrayOf, Id, ListQuery, MergePatch, ref, Timestamp
} from '../http/common-schemas.ts'
import { InventoryItemSchema } from '../pets/schemas.ts'

const petId = Id('Id of the pet in the order')
const QUANTITY = { minimum: 1, maximum: 2147483647, description: 'Number of units ordered', example: 2 }
const shipDate = Timestamp('Expected or actual ship date')
const COMPLETE = { description: 'Whether the order has been fulfilled', example: false }
const complete = Type.Boolean(COMPLETE)

export const NewOrderSchema = Type.Object({
  petId,
  quantity: Type.Optional(Type.Integer({ ...QUANTITY, description: 'Number of units ordered. Default: 1' })),
  shipDate: Type.Optional(shipDate),
  complete: Type.Optional(Type.Boolean({ ...COMPLETE, description: `${COMPLETE.description}. Default: false` }))
}, { $id: 'NewOrder', ...NO_ADDITIONAL_PROPERTIES, description: 'An order to place for units of an available pet.' })
export type NewOrder = Static<typeof NewOrderSchema>

export const OrderUpdateSchema = MergePatch(
  'OrderUpdate', { shipDate: Type.Optional(shipDate), complete }, ' `shipDate: null` clears the date.')
export type OrderUpdate = Static<typeof OrderUpdateSchema>

export const OrderSchema = Type.Partial(Type.Object({
  id: Id('Unique order identifier', 7),
  petId,
  quantity: Type.Integer({ description: 'Number of units ordered', example: 2 }),
  shipDate,
  complete
}), { $id: 'Order', description: 'An order for units of a pet. The units are no longer in stock.' })
export type Order = Static<typeof OrderSchema>

const data = { order: ref(OrderSchema), inventory: ref(InventoryItemSchema) }

export const orderEvents = defineEvents('order', { placed: data, updated: data, completed: data, cancelled: data }, {
  completed: {
    order: { id: 7, petId: 7, quantity: 2, complete: true },
    inventory: { petId: 7, quantity: 12, status: 'available' }
  }
})

export const OrderParams = Type.Object({ orderId: Id('Id of the order', 7) }, NO_ADDITIONAL_PROPERTIES)

export const OrderQuery = ListQuery({
  petId: Type.Optional(Id('Only orders for this pet')),
  complete: Type.Optional(Type.Boolean({
    description: 'Only complete orders, or only open orders', example: false
  }))
})

export const OrdersSchema = arrayOf(OrderSchema)
