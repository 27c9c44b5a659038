import type { Answer, Operation, PetStatus, Request } from './operation.ts'

// A model of the objects of a store, written from the contract: what a request answers and writes, by the state alone.

/** A pet with everything that its rules connect: its stock and its orders. */
export interface PetState {
  /** `undefined` before it was created and after it was deleted. */
  pet: { name: string, status: PetStatus, version: number } | undefined
  /** `undefined` before the first count. */
  stock: { quantity: number, version: number } | undefined
  /** By ship date. */
  orders: Record<string, { quantity: number, complete: boolean, version: number }>
}

export interface RecordState { record: { name: string, version: number } | undefined }

export interface Outcome<State> {
  answer: Answer
  /** The same object if nothing changed. */
  state: State
  events: Array<{ type: string, data: Record<string, unknown> }>
}

/** Returns what a request on an object in a state answers, what it leaves, and the events that it writes. */
export type Apply<State> = (state: State, operation: Conditional) => Outcome<State>

type Conditional = Pick<Operation, 'request' | 'ifMatch'>

const etagOf = (version: number): string => `"${version}"`

type Refuse<State> = (state: State, status: number, code: string) => Outcome<State>
const refuse: Refuse<any> = (state, status, code) => ({ answer: { status, code }, state, events: [] })

function fails (ifMatch: string | undefined, etag: string | undefined): boolean {
  return ifMatch !== undefined && (etag === undefined || (ifMatch !== '*' && ifMatch !== etag))
}

function emptied (open: number): PetStatus {
  return open > 0 ? 'pending' : 'sold'
}

function openOrders ({ orders }: PetState): number {
  return Object.values(orders).filter(({ complete }) => !complete).length
}

const petData = ({ pet }: PetState): object => ({ name: pet!.name, status: pet!.status })
const stockData = ({ pet, stock }: PetState): object => ({ quantity: stock!.quantity, status: pet!.status })
const stockTag = ({ pet, stock }: PetState): string | undefined =>
  stock === undefined ? undefined : `"${stock.version}-${pet!.status}"`
const orderData = ({ orders }: PetState, order: string): object => {
  const { quantity, complete } = orders[order]!
  return { shipDate: order, quantity, complete }
}

function petUpdated (state: PetState): Outcome<PetState>['events'][number] {
  const inventory = state.stock === undefined ? {} : { inventory: stockData(state) }
  return { type: 'pet.updated', data: { pet: petData(state), ...inventory } }
}

/** Returns the state with a status that the stock moved, which is a change of the pet. */
function withStatus (state: PetState, status: PetStatus): PetState {
  const pet = state.pet!
  return status === pet.status ? state : { ...state, pet: { ...pet, status, version: pet.version + 1 } }
}

export const newPetObject: PetState = { pet: undefined, stock: undefined, orders: {} }

export const applyToPet: Apply<PetState> = (state, operation) => {
  const { request, ifMatch } = operation
  const { pet } = state
  const petTag = pet && etagOf(pet.version)
  switch (request.kind) {
    case 'create pet': {
      const created = { name: request.name, status: 'available' as const, version: 1 }
      const after: PetState = { ...newPetObject, pet: created }
      const answer = { status: 201, body: petData(after), etag: etagOf(1) }
      return { answer, state: after, events: [{ type: 'pet.created', data: { pet: petData(after) } }] }
    }
    case 'read pet':
      if (pet === undefined) return { answer: { status: 200, body: null }, state, events: [] }
      return { answer: { status: 200, body: petData(state), etag: petTag! }, state, events: [] }
    case 'read stock':
      if (pet === undefined) return refuse(state, 404, 'pet_not_found')
      if (state.stock === undefined) return refuse(state, 404, 'inventory_not_found')
      return { answer: { status: 200, body: stockData(state), etag: stockTag(state)! }, state, events: [] }
    case 'change pet':
      if (pet === undefined) return refuse(state, 404, 'pet_not_found')
      if (fails(ifMatch, petTag)) return refuse(state, 412, 'precondition_failed')
      return changePet(state, request)
    case 'delete pet':
      if (pet === undefined) return refuse(state, 404, 'pet_not_found')
      if (fails(ifMatch, petTag)) return refuse(state, 412, 'precondition_failed')
      if (Object.keys(state.orders).length > 0) return refuse(state, 409, 'pet_in_use')
      return {
        answer: { status: 204 },
        state: newPetObject,
        events: [{ type: 'pet.deleted', data: { pet: petData(state) } }]
      }
    case 'count':
      if (pet === undefined) return refuse(state, 404, 'pet_not_found')
      if (fails(ifMatch, stockTag(state))) return refuse(state, 412, 'precondition_failed')
      return count(state, request.quantity)
    default: return applyToOrders(state, operation)
  }
}

function changePet (state: PetState, request: Request & { kind: 'change pet' }): Outcome<PetState> {
  const pet = state.pet!
  const { name = pet.name, status = pet.status } = request
  const isEmpty = status === 'available' && state.stock?.quantity === 0
  if (status !== pet.status && (pet.status === 'sold' || isEmpty)) {
    return refuse(state, 409, 'invalid_status_transition')
  }
  if (name === pet.name && status === pet.status) {
    return { answer: { status: 200, body: petData(state), etag: etagOf(pet.version) }, state, events: [] }
  }
  const after = { ...state, pet: { name, status, version: pet.version + 1 } }
  const answer = { status: 200, body: petData(after), etag: etagOf(pet.version + 1) }
  return { answer, state: after, events: [petUpdated(after)] }
}

function count (state: PetState, quantity: number): Outcome<PetState> {
  const { stock } = state
  const counted = quantity === stock?.quantity ? stock : { quantity, version: (stock?.version ?? 0) + 1 }
  const after = withStatus({ ...state, stock: counted }, quantity > 0 ? 'available' : emptied(openOrders(state)))
  const answer = { status: 200, body: stockData(after), etag: stockTag(after)! }
  const isMoved = after.pet !== state.pet
  if (counted === stock && !isMoved) return { answer, state, events: [] }
  const data = { inventory: stockData(after), previousQuantity: stock?.quantity ?? 0 }
  return {
    answer, state: after, events: [{ type: 'inventory.counted', data }, ...isMoved ? [petUpdated(after)] : []]
  }
}

function applyToOrders (state: PetState, { request, ifMatch }: Conditional): Outcome<PetState> {
  if (request.kind === 'place order') return placeOrder(state, request)
  if (request.kind === 'list orders') {
    const body = Object.keys(state.orders).sort().map((order) => orderData(state, order))
    return { answer: { status: 200, body }, state, events: [] }
  }
  if (!('order' in request)) throw new Error(`a pet has no ${request.kind}`)
  const order = state.orders[request.order]
  if (order === undefined) return refuse(state, 404, 'order_not_found')
  const current = { status: 200, body: orderData(state, request.order), etag: etagOf(order.version) }
  if (request.kind === 'read order') return { answer: current, state, events: [] }
  if (fails(ifMatch, current.etag)) return refuse(state, 412, 'precondition_failed')
  return request.kind === 'complete order'
    ? completeOrder(state, request.order, current)
    : cancelOrder(state, request.order)
}

function placeOrder (state: PetState, request: Request & { kind: 'place order' }): Outcome<PetState> {
  const { pet, stock } = state
  const { order, quantity, complete } = request
  if (pet === undefined) return refuse(state, 409, 'unknown_pet')
  if (pet.status !== 'available') return refuse(state, 409, 'pet_not_available')
  if (stock === undefined || stock.quantity < quantity) return refuse(state, 409, 'insufficient_stock')
  const left = stock.quantity - quantity
  const placed = {
    ...state,
    stock: { quantity: left, version: stock.version + 1 },
    orders: { ...state.orders, [order]: { quantity, complete, version: 1 } }
  }
  const after = left > 0 ? placed : withStatus(placed, emptied(openOrders(placed)))
  const data = { order: orderData(after, order), inventory: stockData(after) }
  return {
    answer: { status: 201, body: orderData(after, order), etag: etagOf(1) },
    state: after,
    events: [
      { type: 'order.placed', data },
      ...complete ? [{ type: 'order.completed', data }] : [],
      ...after.pet === pet ? [] : [petUpdated(after)]
    ]
  }
}

function completeOrder (state: PetState, order: string, current: Answer): Outcome<PetState> {
  const { quantity, complete, version } = state.orders[order]!
  if (complete) return { answer: current, state, events: [] }
  const completed = {
    ...state, orders: { ...state.orders, [order]: { quantity, complete: true, version: version + 1 } }
  }
  const isLast = state.stock!.quantity === 0 && openOrders(completed) === 0
  const after = isLast ? withStatus(completed, 'sold') : completed
  const data = { order: orderData(after, order), inventory: stockData(after) }
  return {
    answer: { status: 200, body: orderData(after, order), etag: etagOf(version + 1) },
    state: after,
    events: [{ type: 'order.completed', data }, ...after.pet === state.pet ? [] : [petUpdated(after)]]
  }
}

function cancelOrder (state: PetState, order: string): Outcome<PetState> {
  const { [order]: cancelled, ...orders } = state.orders
  if (cancelled!.complete) return refuse(state, 409, 'order_already_shipped')
  const { quantity, version } = state.stock!
  const returned = { ...state, orders, stock: { quantity: quantity + cancelled!.quantity, version: version + 1 } }
  const after = quantity === 0 ? withStatus(returned, 'available') : returned
  const data = { order: orderData(state, order), inventory: stockData(after) }
  return {
    answer: { status: 204 },
    state: after,
    events: [{ type: 'order.cancelled', data }, ...after.pet === state.pet ? [] : [petUpdated(after)]]
  }
}

export const newRecord: RecordState = { record: undefined }

export const applyToCategory: Apply<RecordState> = (state, { request, ifMatch }) => {
  const { record } = state
  const event = (type: string, name: string): Outcome<RecordState>['events'][number] =>
    ({ type: `category.${type}`, data: { category: { name } } })
  if (request.kind === 'create category') {
    const { name } = request
    const answer = { status: 201, body: { name }, etag: etagOf(1) }
    return { answer, state: { record: { name, version: 1 } }, events: [event('created', name)] }
  }
  if (record === undefined) return refuse(state, 404, 'category_not_found')
  const { name, version } = record
  if (!request.kind.startsWith('read') && fails(ifMatch, etagOf(version))) {
    return refuse(state, 412, 'precondition_failed')
  }
  if (request.kind === 'delete category') {
    return { answer: { status: 204 }, state: newRecord, events: [event('deleted', name)] }
  }
  if (request.kind === 'change category' && request.name !== name) {
    const changed = { name: request.name, version: version + 1 }
    const answer = { status: 200, body: { name: request.name }, etag: etagOf(changed.version) }
    return { answer, state: { record: changed }, events: [event('updated', request.name)] }
  }
  return { answer: { status: 200, body: { name }, etag: etagOf(version) }, state, events: [] }
}

export const applyToMessage: Apply<RecordState> = (state, { request }) => {
  if (request.kind === 'create message') {
    const body = { message: request.message, status: 'queued' }
    const answer = { status: 201, body, etag: etagOf(1) }
    const events = [{ type: 'message.created', data: { message: body } }]
    return { answer, state: { record: { name: request.message, version: 1 } }, events }
  }
  const { record } = state
  if (record === undefined) return refuse(state, 404, 'message_not_found')
  const body = { message: record.name, status: 'queued' }
  return { answer: { status: 200, body, etag: etagOf(record.version) }, state, events: [] }
}
