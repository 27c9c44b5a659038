import type { IncomingHttpHeaders } from 'node:http'
import type { StreamedEvent } from './stream.ts'

/** A copy of a store: its records by kind and id. */
export type Copy = Record<'pets' | 'categories' | 'orders' | 'inventory' | 'messages', Map<number | string, unknown>>

type Lists = Record<keyof Copy, unknown[]>

const PATHS: Record<keyof Copy, string> = {
  pets: '/pets',
  categories: '/categories',
  orders: '/store/orders',
  inventory: '/inventory',
  messages: '/messages'
}

function emptyCopy (): Copy {
  return { pets: new Map(), categories: new Map(), orders: new Map(), inventory: new Map(), messages: new Map() }
}

/** Builds a copy of a store from its events alone, from the start or from an earlier copy. */
export function mirror (events: StreamedEvent[], copy = emptyCopy()): Copy {
  for (const { type, data: { pet, category, order, inventory, message } } of events) {
    if (category !== undefined) set(copy.categories, category.id, category, type)
    if (pet !== undefined) {
      set(copy.pets, pet.id, pet, type)
      if (type === 'pet.deleted') copy.inventory.delete(pet.id)
    }
    if (order !== undefined) set(copy.orders, order.id, order, type === 'order.cancelled' ? 'order.deleted' : type)
    if (inventory !== undefined) copy.inventory.set(inventory.petId, inventory)
    if (message !== undefined) copy.messages.set(message.id, message)
  }
  return copy
}

function set (records: Map<number | string, unknown>, id: number, record: unknown, type: string): void {
  if (type.endsWith('deleted')) records.delete(id)
  else records.set(id, record)
}

/** Returns the records of a copy as the lists show them. */
export function listed (copy: Copy): Lists {
  return Object.fromEntries(Object.entries(copy).map(([name, records]) =>
    [name, [...records].sort(([a], [b]) => a < b ? -1 : 1).map(([, record]) => record)])) as Lists
}

/** Converts the records of the lists to a copy. */
export function copied (lists: Lists): Copy {
  return Object.fromEntries(Object.entries(lists).map(([name, records]) => {
    const id = name === 'inventory' ? 'petId' : 'id'
    return [name, new Map(records.map((record) => [(record as Record<string, number>)[id]!, record]))]
  })) as Copy
}

type Get = (path: string) => Promise<{ status: number, text: string, body: any, headers: IncomingHttpHeaders }>

/** Walks all lists of a store. */
export async function walkStore (get: Get): Promise<Lists> {
  const lists = await Promise.all(Object.entries(PATHS).map(async ([name, path]) =>
    [name, await walk(get, `${path}?limit=100`)]))
  return Object.fromEntries(lists) as Lists
}

/** Walks all lists of a store until nothing changes meanwhile. @returns the lists and the number of the last event */
export async function walkStillStore (get: Get): Promise<{ lists: Lists, last: number }> {
  const newestEvent = async (): Promise<number> => Number((await get('/events?limit=1')).headers['event-id'])
  for (;;) {
    const last = await newestEvent()
    const lists = await walkStore(get)
    if (await newestEvent() === last) return { lists, last }
  }
}

/** Reads all events after an id from the list. */
export async function walkEvents (get: Get, after: number): Promise<StreamedEvent[]> {
  return await walk(get, `/events?limit=100&after=${after}`) as StreamedEvent[]
}

async function walk (get: Get, first: string): Promise<unknown[]> {
  const records: unknown[] = []
  for (let next: string | undefined = first; next !== undefined;) {
    const { status, text, body, headers } = await get(next)
    if (status !== 200) throw new Error(`${next} is answered ${status} ${text}`)
    records.push(...body)
    next = /<([^>]*)>; rel="next"/.exec(String(headers.link))?.[1]
  }
  return records
}
