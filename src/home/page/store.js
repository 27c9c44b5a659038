import { send, walk } from './service.js'

/** @import { StoreEvent } from './feed.js' */

/** So many pages of each list are read at most: a glance is no export. */
const PAGES = 20

/** So many events are shown. */
const EVENTS = 8

/**
 * A store as far as a glance needs it.
 *
 * @typedef {object} Store
 * @property {Map<number, { id: number, name: string, status: string }>} pets
 * @property {Map<number, number>} units in stock, by pet
 * @property {Map<number, { id: number, petId: number, quantity: number }>} orders the open ones
 * @property {StoreEvent[]} events the last ones, newest first
 * @property {number} position the newest event that is in it
 * @property {boolean} whole whether all records were read
 */

/**
 * Reads the store: first the number of its newest event, then the lists. What changes meanwhile comes
 * again as an event after that number, and does no harm, because events hold whole records.
 *
 * @param {string} key
 * @param {AbortSignal} signal
 * @returns {Promise<Store>}
 */
export async function readStore (key, signal) {
  const { headers } = await send('GET', 'events?limit=1', { key, signal })
  const position = Number(headers.get('Event-Id'))
  const [pets, stock, orders, events] = await Promise.all([
    walk('pets', {}, key, PAGES, signal),
    walk('inventory', {}, key, PAGES, signal),
    walk('store/orders', { complete: 'false' }, key, PAGES, signal),
    lastEvents(position, key, signal)
  ])
  return {
    pets: new Map(pets.records.map((pet) => [pet.id, pet])),
    units: new Map(stock.records.map(({ petId, quantity }) => [petId, quantity])),
    orders: new Map(orders.records.map((order) => [order.id, order])),
    events,
    position,
    whole: pets.whole && stock.whole && orders.whole
  }
}

/** None, where they are too old to be held. */
async function lastEvents (/** @type {number} */ newest, /** @type {string} */ key, /** @type {AbortSignal} */ signal) {
  try {
    const answer = await send('GET', `events?limit=${EVENTS}&after=${Math.max(0, newest - EVENTS)}`, { key, signal })
    const events = /** @type {StoreEvent[]} */ (await answer.json())
    return events.filter(({ id }) => id <= newest).reverse()
  } catch (error) {
    if (/** @type {{ status?: number }} */ (error).status === 410) return []
    throw error
  }
}

/**
 * Takes an event into a store.
 *
 * @param {Store} store
 * @param {StoreEvent} event
 */
export function apply (store, event) {
  const { type, data: { pet, order, inventory } } = event
  if (type === 'pet.deleted') {
    store.pets.delete(pet.id)
    store.units.delete(pet.id)
  } else if (pet !== undefined) {
    store.pets.set(pet.id, pet)
  }
  if (order !== undefined) {
    if (type === 'order.cancelled' || order.complete) store.orders.delete(order.id)
    else store.orders.set(order.id, order)
  }
  if (inventory !== undefined) store.units.set(inventory.petId, inventory.quantity)
  store.position = event.id
  store.events = [event, ...store.events].slice(0, EVENTS)
}

/** @param {Store} store */
export function figuresOf ({ pets, units, orders }) {
  const figures = { available: 0, pending: 0, sold: 0, units: 0, orders: orders.size }
  for (const { status } of pets.values()) figures[/** @type {'available' | 'pending' | 'sold'} */ (status)]++
  for (const quantity of units.values()) figures.units += quantity
  return figures
}

/**
 * A pet that can be ordered, any of them.
 *
 * @param {Store} store
 */
export function orderable ({ pets, units }) {
  const found = [...pets.values()].filter(({ id, status }) => status === 'available' && (units.get(id) ?? 0) > 0)
  return found[Math.floor(Math.random() * found.length)]
}

/**
 * An event in words.
 *
 * @param {Store} store
 * @param {StoreEvent} event
 */
export function wordsOf ({ pets }, { type, data: { pet, category, order, inventory, message } }) {
  const name = (/** @type {number} */ id) => pets.get(id)?.name ?? `pet ${id}`
  switch (type) {
    case 'pet.created': return `${pet.name} was added`
    case 'pet.updated': return `${pet.name} is ${pet.status}`
    case 'pet.deleted': return `${pet.name} was removed`
    case 'category.created': return `Category ${category.name} was added`
    case 'category.updated': return `Category ${category.name} was changed`
    case 'category.deleted': return `Category ${category.name} was removed`
    case 'order.placed': return `Order ${order.id}: ${order.quantity} × ${name(order.petId)}`
    case 'order.updated': return `Order ${order.id} was changed`
    case 'order.completed': return `Order ${order.id} is complete`
    case 'order.cancelled': return `Order ${order.id} was cancelled`
    case 'inventory.counted': return `${name(inventory.petId)}: ${inventory.quantity} in stock`
    case 'message.created': return `Message “${short(message.message)}” was queued`
    case 'message.delivered': return `Message “${short(message.message)}” was delivered`
    case 'message.failed': return `Message “${short(message.message)}” failed`
    default: return type
  }
}

function short (/** @type {string} */ text) {
  const characters = [...text]
  return characters.length > 40 ? `${characters.slice(0, 40).join('')}…` : text
}
