import type { Answer } from '../support/app.ts'

export const STATUSES = ['available', 'pending', 'sold'] as const
type Status = typeof STATUSES[number]

/** Chooses a row by a number, among all rows created before, deleted ones included. */
export type Command =
  | { type: 'create', status: Status }
  | { type: 'count', pet: number, quantity: number }
  | { type: 'place', pet: number, quantity: number, complete: boolean }
  | { type: 'complete' | 'cancel', order: number }
  | { type: 'set status', pet: number, status: Status }
  | { type: 'delete', pet: number }

interface Pet { id: number, name: string, categoryId: number, status: Status }
interface Order { id: number, petId: number, quantity: number, complete: boolean }

export interface Model {
  pets: Map<number, Pet>
  /** The units in stock by pet, for counted pets. */
  stock: Map<number, number>
  orders: Map<number, Order>
  /** The sum of (new − previous) over a pet's counts. */
  counted: Map<number, number>
}

/** A command on certain rows, ready to send. */
export interface Call {
  command: Command
  request: [method: string, path: string, body?: unknown]
  /** Applies it to the model. A new row gets the id that the service chose. @returns the expected answer */
  apply: (model: Model, answer: Answer) => { status: number, body?: unknown, code?: string }
}

/** The visible state of a store. */
export interface Seen {
  pets: Pet[]
  inventory: Array<{ petId: number, quantity: number, status: Status }>
  orders: Order[]
}

export function callOf (command: Command, ids: { pets: number[], orders: number[] }, categoryId: number): Call {
  /** Returns the id of a row, or an unused id when there is no row. */
  const nth = (all: number[], n: number): number => all[n % all.length] ?? 999_999_999
  switch (command.type) {
    case 'create': {
      const pet = { name: 'Rex', categoryId, status: command.status }
      return {
        command,
        request: ['POST', '/pets', pet],
        apply ({ pets }, answer) {
          const { id } = answer.body
          pets.set(id, { id, ...pet })
          return { status: 201, body: { id, ...pet } }
        }
      }
    }
    case 'count': {
      const { quantity } = command
      const petId = nth(ids.pets, command.pet)
      return {
        command,
        request: ['PATCH', `/inventory/${petId}`, { quantity }],
        apply (model) {
          const pet = model.pets.get(petId)
          if (pet === undefined) return { status: 404, code: 'pet_not_found' }
          model.counted.set(petId, (model.counted.get(petId) ?? 0) + quantity - (model.stock.get(petId) ?? 0))
          model.stock.set(petId, quantity)
          pet.status = quantity > 0 ? 'available' : openOf(model, petId) > 0 ? 'pending' : 'sold'
          return { status: 200, body: { petId, quantity, status: pet.status } }
        }
      }
    }
    case 'place': {
      const { quantity, complete } = command
      const petId = nth(ids.pets, command.pet)
      return {
        command,
        request: ['POST', '/store/orders', { petId, quantity, complete }],
        apply (model, answer) {
          const pet = model.pets.get(petId)
          if (pet === undefined) return { status: 409, code: 'unknown_pet' }
          if (pet.status !== 'available') return { status: 409, code: 'pet_not_available' }
          const stock = model.stock.get(petId) ?? 0
          if (stock < quantity) return { status: 409, code: 'insufficient_stock' }
          const order = { id: answer.body.id, petId, quantity, complete }
          model.orders.set(order.id, order)
          model.stock.set(petId, stock - quantity)
          if (stock === quantity) pet.status = openOf(model, petId) > 0 ? 'pending' : 'sold'
          return { status: 201, body: { ...order } }
        }
      }
    }
    case 'complete': {
      const id = nth(ids.orders, command.order)
      return {
        command,
        request: ['PATCH', `/store/orders/${id}`, { complete: true }],
        apply (model) {
          const order = model.orders.get(id)
          if (order === undefined) return { status: 404, code: 'order_not_found' }
          if (!order.complete) {
            order.complete = true
            if (model.stock.get(order.petId) === 0 && openOf(model, order.petId) === 0) {
              model.pets.get(order.petId)!.status = 'sold'
            }
          }
          return { status: 200, body: { ...order } }
        }
      }
    }
    case 'cancel': {
      const id = nth(ids.orders, command.order)
      return {
        command,
        request: ['DELETE', `/store/orders/${id}`],
        apply (model) {
          const order = model.orders.get(id)
          if (order === undefined) return { status: 404, code: 'order_not_found' }
          if (order.complete) return { status: 409, code: 'order_already_shipped' }
          const stock = model.stock.get(order.petId)!
          model.orders.delete(id)
          model.stock.set(order.petId, stock + order.quantity)
          if (stock === 0) model.pets.get(order.petId)!.status = 'available'
          return { status: 204 }
        }
      }
    }
    case 'set status': {
      const { status } = command
      const petId = nth(ids.pets, command.pet)
      return {
        command,
        request: ['PATCH', `/pets/${petId}`, { status }],
        apply (model) {
          const pet = model.pets.get(petId)
          if (pet === undefined) return { status: 404, code: 'pet_not_found' }
          const forbidden = pet.status === 'sold' || (status === 'available' && model.stock.get(petId) === 0)
          if (status !== pet.status && forbidden) return { status: 409, code: 'invalid_status_transition' }
          pet.status = status
          return { status: 200, body: { ...pet } }
        }
      }
    }
    case 'delete': {
      const petId = nth(ids.pets, command.pet)
      return {
        command,
        request: ['DELETE', `/pets/${petId}`],
        apply (model) {
          if (!model.pets.has(petId)) return { status: 404, code: 'pet_not_found' }
          if ([...model.orders.values()].some((order) => order.petId === petId)) {
            return { status: 409, code: 'pet_in_use' }
          }
          for (const rows of [model.pets, model.stock, model.counted]) rows.delete(petId)
          return { status: 204 }
        }
      }
    }
  }
}

function openOf ({ orders }: Model, petId: number): number {
  return [...orders.values()].filter((order) => order.petId === petId && !order.complete).length
}

export function seenOf ({ pets, stock, orders }: Model): Seen {
  return {
    pets: byId(pets),
    inventory: [...stock]
      .map(([petId, quantity]) => ({ petId, quantity, status: pets.get(petId)!.status }))
      .sort((a, b) => a.petId - b.petId),
    orders: byId(orders)
  }
}

function byId<Row extends { id: number }> (rows: Map<number, Row>): Row[] {
  return [...rows.values()].sort((a, b) => a.id - b.id)
}

export function copyOf ({ pets, stock, orders, counted }: Model): Model {
  const copy = <Row>(rows: Map<number, Row>): Map<number, Row> =>
    new Map([...rows].map(([id, row]) => [id, structuredClone(row)]))
  return { pets: copy(pets), stock: copy(stock), orders: copy(orders), counted: copy(counted) }
}
