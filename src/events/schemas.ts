import { Type, type TSchema } from '@sinclair/typebox'
import { CategorySchema } from '../categories/schemas.ts'
import { InventoryItemSchema } from '../inventory/schemas.ts'
import { MessageSchema } from '../messages/schemas.ts'
import { OrderSchema } from '../orders/schemas.ts'
import { PetSchema } from '../pets/schemas.ts'
import { NO_ADDITIONAL_PROPERTIES, Id, StringEnum, ref, Timestamp } from '../http/common-schemas.ts'

const pet = { pet: ref(PetSchema) }
const category = { category: ref(CategorySchema) }
const order = { order: ref(OrderSchema), inventory: ref(InventoryItemSchema) }
const counted = {
  inventory: ref(InventoryItemSchema),
  previousQuantity: Type.Integer({ format: 'int64', description: 'The count before, 0 before the first', example: 0 })
}
const message = { message: ref(MessageSchema) }

/** What an event of each type holds: whole records, as they are after the change. */
const DATA = {
  'pet.created': pet,
  'pet.updated': pet,
  'pet.deleted': pet,
  'category.created': category,
  'category.updated': category,
  'category.deleted': category,
  'order.placed': order,
  'order.updated': order,
  'order.completed': order,
  'order.cancelled': order,
  'inventory.counted': counted,
  'message.created': message,
  'message.delivered': message,
  'message.failed': message
} satisfies Record<string, Record<string, TSchema>>

export type EventType = keyof typeof DATA
export const EVENT_TYPES = Object.keys(DATA) as EventType[]

const INVENTORY = { petId: 7, quantity: 12, status: 'available' }
const MESSAGE = { id: 'msg_000000000g4jm1zq7c8x0v2ykp', message: 'Hello', createdAt: '2026-11-21T10:00:00.000Z' }

/** Where the records of an event are not as the examples of their own schemas show them. */
const EXAMPLES: Partial<Record<EventType, object>> = {
  'order.completed': { order: { id: 21, petId: 7, quantity: 2, complete: true }, inventory: INVENTORY },
  'message.delivered': { message: { ...MESSAGE, status: 'delivered' } },
  'message.failed': { message: { ...MESSAGE, status: 'failed' } }
}

/** `pet.created` becomes PetCreated, the component of its events. */
export const eventSchemas: TSchema[] = EVENT_TYPES.map((type) => Type.Object({
  id: Id("Number of the event in the account's own gapless sequence", 1),
  type: StringEnum([type], { description: 'What happened', example: type }),
  timestamp: Timestamp('When it happened'),
  data: Type.Object(DATA[type], EXAMPLES[type] && { example: EXAMPLES[type] })
}, { $id: nameOf(type), description: `An event of the type ${type}.` }))

export const EventSchema = Type.Unsafe<object>({
  $id: 'Event',
  description: 'A change of the store. It holds whole records as they are after the change, so applying it twice does no harm.',
  oneOf: EVENT_TYPES.map((type) => ({ $ref: `${nameOf(type)}#` })),
  discriminator: {
    propertyName: 'type',
    mapping: Object.fromEntries(EVENT_TYPES.map((type) => [type, `#/components/schemas/${nameOf(type)}`]))
  }
})

export const EventQuery = Type.Object({
  after: Type.Optional(Type.Integer({ format: 'int64', minimum: 0, description: 'Only events after this one; without it, all that are held', example: 0 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'How many events to answer at most', example: 20 }))
}, NO_ADDITIONAL_PROPERTIES)

function nameOf (type: EventType): string {
  return type.split('.').map((word) => word[0]!.toUpperCase() + word.slice(1)).join('') + 'Event'
}
