import { ApiError, readList, send } from './service.js'

/** @import { StoreEvent } from './feed.js' */

/** Maximum number of pages to read of each list: this page is an overview, not an export. */
const MAX_PAGES = 20

/** Maximum number of events in the list. */
const MAX_EVENTS = 8

/**
 * The part of a store that this page shows.
 *
 * @typedef {object} Store
 * @property {Map<number, { id: number, name: string, status: string }>} pets
 * @property {Map<number, string>} names of the pets that this page has seen, also of those that are gone
 * @property {Map<number, number>} units in stock, by pet
 * @property {Map<number, { id: number, petId: number, quantity: number }>} orders the open ones
 * @property {StoreEvent[]} events the last ones, newest first
 * @property {number} position the id of the newest event that it includes
 * @property {boolean} complete whether it includes all records
 */

/**
 * Reads the store: first the id of its newest event, then the lists. Changes in between arrive again as events after
 * that id. Applying them twice is harmless, because events contain whole records.
 *
 * @param {string} key
 * @param {AbortSignal} signal
 * @param {Map<number, string>} names of the pets that this page has seen in the store
 * @returns {Promise<Store>}
 */
export async function readStore (key, signal, names) {
  const { headers } = await send('GET', 'events?limit=1', { key, signal })
  const position = Number(headers.get('Event-Id'))
  const [pets, stock, orders, events] = await Promise.all([
    readList('pets', {}, key, MAX_PAGES, signal),
    readList('inventory', {}, key, MAX_PAGES, signal),
    readList('store/orders', { complete: 'false' }, key, MAX_PAGES, signal),
    lastEvents(position, key, signal)
  ])
  for (const pet of [...events.flatMap(({ data }) => data['pet'] ?? []), ...pets.records]) names.set(pet.id, pet.name)
  return {
    names,
    pets: new Map(pets.records.map((pet) => [pet.id, pet])),
    units: new Map(stock.records.map(({ petId, quantity }) => [petId, quantity])),
    orders: new Map(orders.records.map((order) => [order.id, order])),
    events,
    position,
    complete: pets.complete && stock.complete && orders.complete
  }
}

/** Reads the latest events that the service still has. */
async function lastEvents (/** @type {number} */ newest, /** @type {string} */ key, /** @type {AbortSignal} */ signal) {
  const path = `events?limit=${MAX_EVENTS}`
  const response = await send('GET', `${path}&after=${Math.max(0, newest - MAX_EVENTS)}`, { key, signal })
    .catch(async (error) => {
      if (!(error instanceof ApiError) || error.status !== 410) throw error
      // Some of them have expired, as after an advance of the clock: the service has fewer, and starts with the oldest.
      return await send('GET', path, { key, signal })
    })
  const events = /** @type {StoreEvent[]} */ (await response.json())
  return events.filter(({ id }) => id <= newest).reverse()
}

/**
 * Applies an event to a store.
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
    store.names.set(pet.id, pet.name)
  }
  if (order !== undefined) {
    if (type === 'order.cancelled' || order.complete) store.orders.delete(order.id)
    else store.orders.set(order.id, order)
  }
  if (inventory !== undefined) store.units.set(inventory.petId, inventory.quantity)
  store.position = event.id
  store.events = [event, ...store.events].slice(0, MAX_EVENTS)
}

/**
 * Counts the pets by status, the units in stock and the open orders.
 *
 * @param {Store} store
 */
export function countStore ({ pets, units, orders }) {
  const figures = { available: 0, pending: 0, sold: 0, units: 0, orders: orders.size }
  for (const { status } of pets.values()) figures[/** @type {'available' | 'pending' | 'sold'} */ (status)]++
  for (const quantity of units.values()) figures.units += quantity
  return figures
}

/**
 * Picks the first pet that can be ordered.
 *
 * @param {Store} store
 */
export function pickOrderable ({ pets, units }) {
  return [...pets.values()].find(({ id, status }) => status === 'available' && (units.get(id) ?? 0) > 0)
}

/**
 * Describes an event.
 *
 * @param {Store} store
 * @param {StoreEvent} event
 */
export function describeEvent ({ names }, { type, data }) {
  const { pet, category, order, inventory, message, snapshot } = data
  const name = (/** @type {number} */ id) => names.get(id) ?? `pet ${id}`
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
    case 'message.created': return `Message “${shorten(message.message)}” was queued`
    case 'message.processing': return `Message “${shorten(message.message)}” is tried again`
    case 'message.delivered': return `Message “${shorten(message.message)}” was delivered`
    case 'message.failed': return `Message “${shorten(message.message)}” failed`
    case 'fault.hit': return describeHit(data)
    case 'clock.advanced': return `The clock moved to ${data['to'].slice(0, 16).replace('T', ' ')}`
    case 'store.replaced':
      return snapshot === undefined ? 'The store was reset' : `The store was restored from snapshot ${snapshot.id}`
    default: return type
  }
}

/** What a fault did, by the type of its effect. @type {Record<string, string>} */
const HITS = {
  delay: 'delayed the response to',
  refuse: 'refused',
  reset: 'closed the connection of',
  lose_answer: 'lost the response to',
  replace_answer: 'replaced the response to',
  truncate: 'cut the response to',
  trickle: 'slowed the response to',
  corrupt: 'corrupted the response to'
}

/** @param {StoreEvent['data']} data */
function describeHit ({ fault, operation }) {
  const { id, effect: { type } } = fault
  // A corrupted call is sent to the webhook. It has no response yet.
  const hit = operation === 'webhook' && type === 'corrupt' ? 'corrupted' : HITS[type] ?? 'hit'
  return `Fault ${id} ${hit} ${operation === 'webhook' ? 'a call of a webhook' : operation}`
}

/** Shortens a text of a user, for a line. */
export function shorten (/** @type {string} */ text) {
  const characters = [...text]
  return characters.length > 40 ? `${characters.slice(0, 40).join('')}…` : text
}
