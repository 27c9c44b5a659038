import { Type } from '@sinclair/typebox'

const CLOSED = { additionalProperties: false }

const Id = Type.Integer({ minimum: 1 })
const Status = Type.Union([Type.Literal('available'), Type.Literal('pending'), Type.Literal('sold')])
const Text = (maxLength: number) => Type.String({ minLength: 1, maxLength, pattern: '^[^\\u0000]*$' })

export const NewPet = Type.Object({ name: Text(255), categoryId: Id, status: Type.Optional(Status) }, CLOSED)
export const PetUpdate = Type.Object({ name: Text(255) }, CLOSED)
export const Pet = Type.Object({ id: Id, name: Type.String(), categoryId: Id, status: Type.String() })
export const NewOrder = Type.Object({
  petId: Id,
  quantity: Type.Optional(Type.Integer({ minimum: 1, maximum: 2147483647 })),
  complete: Type.Optional(Type.Boolean())
}, CLOSED)
export const Order = Type.Object({ id: Id, petId: Id, quantity: Type.Integer(), complete: Type.Boolean() })
export const NewMessage = Type.Object({ message: Text(10_000) }, CLOSED)
export const Message = Type.Object({
  id: Type.String(),
  message: Type.String(),
  status: Type.String(),
  createdAt: Type.String()
})
export const Problem = Type.Object({ code: Type.String(), message: Type.String(), status: Type.Integer() })
export const PetParams = Type.Object({ petId: Id }, CLOSED)
export const OrderParams = Type.Object({ orderId: Id }, CLOSED)
export const PetQuery = Type.Object({
  status: Type.Optional(Status),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  cursor: Type.Optional(Type.String({ pattern: '^[0-9a-z]{1,11}$' }))
}, CLOSED)
