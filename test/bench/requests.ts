import { randomUUID } from 'node:crypto'

export interface Exchange {
  method: keyof typeof SUCCESS
  path: string
  body?: object
  headers?: Record<string, string>
  /** The status of a request that must be refused. */
  refusal?: number
  /** Only prepares the next request: it counts as a request, but its latency is not recorded. */
  isPreparation?: true
  /** Stores in the connection what the next requests need to know of a successful answer. */
  learn?: (connection: Connection, field: (name: string) => string | undefined) => void
}

const SUCCESS = { GET: 200, POST: 201, PATCH: 200, DELETE: 204 }

/** An account that requests belong to, and the ids of its rows. Ids have no gaps. */
export interface Scope {
  key: string
  /** The id before that of the first pet, and the number of pets. */
  beforePets: number
  pets: number
  /** The id before that of the first category. There are 20. */
  beforeCategories: number
}

/** What a connection knows. No connection changes the pet of another one. */
export interface Connection {
  number: number
  /** The current entity tag of its pet. */
  etag: string
  /** The path of an order that it has placed and not cancelled. */
  order?: string | undefined
}

/** Creates a request for an account. */
export type Next = (random: () => number, scope: Scope, connection: Connection) => Exchange

/** The number of pets that orders use. Every fifth is available with enough units. */
const SPREAD = 1_000
const STATUSES = ['available', 'pending', 'sold']

/** Added to an id, it makes one that no row has. */
const UNKNOWN = 1_000_000_000

/** Of every five pets of a store, the number of those that orders, connections and refused orders use. */
const PLACES = { ordered: 1, owned: 2, sold: 5 }

/** The maximum number of connections that find a pet of their own. */
export const connectionsFor = (pets: number): number => Math.floor(pets / 5)

export const any = (random: () => number, count: number): number => Math.floor(random() * count)

export const read: Next = (random, { beforePets, pets }) => ({
  method: 'GET',
  path: `/pets/${beforePets + any(random, pets) + 1}`
})

/** Chooses a page anywhere in the list, so that no cache contains it. */
export const list = (random: () => number, { beforePets, pets }: Scope, filter = ''): Exchange => {
  const after = beforePets + any(random, Math.max(1, pets - 200))
  return { method: 'GET', path: `/pets?${filter}limit=20&cursor=${after.toString(36)}` }
}

export const category = (random: () => number, { beforeCategories }: Scope): number =>
  beforeCategories + any(random, 20) + 1

export const status = (random: () => number): string => STATUSES[any(random, 3)]!

export const create: Next = (random, scope) =>
  ({ method: 'POST', path: '/pets', body: { name: `Rex ${any(random, 1e6)}`, categoryId: category(random, scope) } })

export const order = (petId: number): Exchange =>
  ({ method: 'POST', path: '/store/orders', body: { petId, quantity: 1 } })

const spreadPet = (random: () => number, { beforePets, pets }: Scope, place: number): number =>
  beforePets + 5 * any(random, Math.min(SPREAD, Math.floor(pets / 5))) + place

export const spread: Next = (random, scope) => order(spreadPet(random, scope, PLACES.ordered))

/** Adds a new Idempotency-Key. It is not from `random`, which repeats its numbers in every round. */
export const keyed = (exchange: Exchange): Exchange =>
  ({ ...exchange, headers: { ...exchange.headers, 'idempotency-key': randomUUID() } })

export const ownPet = ({ beforePets }: Scope, { number }: Connection): number =>
  beforePets + 5 * number + PLACES.owned

/** Renames the connection's pet. The name is new, as otherwise nothing would change. */
export const patch: Next = (_random, scope, connection) => ({
  method: 'PATCH',
  path: `/pets/${ownPet(scope, connection)}`,
  body: { name: `Rex ${randomUUID().slice(0, 8)}` },
  headers: { 'if-match': connection.etag },
  learn: (connection, field) => { connection.etag = field('etag')! }
})

/** Alternates between an order and its cancellation, so that there always is an order to cancel. */
export const cancel: Next = (random, scope, connection) => {
  const { order: path } = connection
  connection.order = undefined
  if (path !== undefined) return { method: 'DELETE', path }
  return {
    ...spread(random, scope, connection),
    isPreparation: true,
    learn: (connection, field) => { connection.order = field('location') }
  }
}

/** A write that is refused, by what it is. */
export const refused: Record<'order' | 'create' | 'patch', Next> = {
  order: (random, scope) => random() < 0.5
    ? { ...order(scope.beforePets + UNKNOWN), refusal: 409 }
    : { ...order(spreadPet(random, scope, PLACES.sold)), refusal: 409 },
  create: () => ({ method: 'POST', path: '/pets', body: { name: 'Rex', categoryId: UNKNOWN }, refusal: 409 }),
  patch: (random, scope, connection) =>
    ({ ...patch(random, scope, connection), headers: { 'if-match': '"0"' }, refusal: 412 })
}

export function newConnection (number: number): Connection {
  return { number, etag: '"1"' }
}

/** Returns the status that the answer must have. */
export function statusOf ({ method, refusal }: Exchange): number {
  return refusal ?? SUCCESS[method]
}

/** Generates numbers from 0 to below 1 from a seed (mulberry32), so that every server gets the same requests. */
export function randomFrom (seed: number): () => number {
  return () => {
    seed = (seed + 0x6D2B79F5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** Serializes a request as it is sent. */
export function requestText ({ method, path, body, headers = {} }: Exchange, key: string): string {
  let head = `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n`
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`
  if (body === undefined) return `${head}\r\n`
  const text = JSON.stringify(body)
  return `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}
