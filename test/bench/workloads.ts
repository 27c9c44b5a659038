import type { DatabaseName } from '../../src/database/dialect.ts'

export interface Exchange {
  method: 'GET' | 'POST'
  path: string
  body?: object
}

/** Minimum ratios of petstore to the other servers, in requests per second and in CPU per request. */
interface Targets {
  hand: Record<DatabaseName, number>
  /** The same after subtracting floor. It is an aim, not a requirement. */
  net?: Record<DatabaseName, number>
  prisma: number
}

export interface Workload {
  title: string
  /** Creates a request for a store with that many pets. */
  next: (random: () => number, pets: number) => Exchange
  targets: Targets
  /** Tables that get a row for each request. The run counts the rows. */
  inserts: string[]
  /** Whether `--quick` runs it. */
  quick?: true
}

/** The number of pets that orders use. Every fifth is available with enough units. */
const SPREAD = 1_000
const STATUSES = ['available', 'pending', 'sold']

const any = (random: () => number, count: number): number => Math.floor(random() * count)

const read = (random: () => number, pets: number): Exchange => ({
  method: 'GET',
  path: `/pets/${any(random, pets) + 1}`
})
/** Chooses a page anywhere in the list, so that no cache contains it. */
const list = (random: () => number, pets: number, filter = ''): Exchange =>
  ({ method: 'GET', path: `/pets?${filter}limit=20&cursor=${any(random, Math.max(1, pets - 200)).toString(36)}` })
const create = (random: () => number): Exchange =>
  ({ method: 'POST', path: '/pets', body: { name: `Rex ${any(random, 1e6)}`, categoryId: any(random, 20) + 1 } })
const order = (petId: number): Exchange => ({ method: 'POST', path: '/store/orders', body: { petId, quantity: 1 } })
const spread = (random: () => number, pets: number): Exchange =>
  order(5 * any(random, Math.min(SPREAD, Math.floor(pets / 5))) + 1)

/** The workloads by name, with their targets. */
export const workloads: Record<string, Workload> = {
  get: {
    title: 'get one pet',
    next: read,
    targets: { hand: { sqlite: 0.9, postgresql: 1.3 }, net: { sqlite: 1, postgresql: 1.5 }, prisma: 3.5 },
    inserts: [],
    quick: true
  },
  list: {
    title: 'list 20',
    next: list,
    targets: { hand: { sqlite: 1.25, postgresql: 1.2 }, net: { sqlite: 1.7, postgresql: 1.4 }, prisma: 3.5 },
    inserts: [],
    quick: true
  },
  filtered: {
    title: 'list 20 by status',
    next: (random, pets) => list(random, pets, `status=${STATUSES[any(random, 3)]}&`),
    targets: { hand: { sqlite: 1.25, postgresql: 1.2 }, net: { sqlite: 1.7, postgresql: 1.4 }, prisma: 3.5 },
    inserts: []
  },
  create: {
    title: 'create a pet',
    next: create,
    targets: { hand: { sqlite: 1.3, postgresql: 2.5 }, net: { sqlite: 1.6, postgresql: 3 }, prisma: 3.5 },
    inserts: ['pets'],
    quick: true
  },
  hot: {
    title: 'order, one hot pet',
    next: () => order(1),
    targets: { hand: { sqlite: 2, postgresql: 4 }, net: { sqlite: 2.5, postgresql: 5 }, prisma: 8 },
    inserts: ['orders'],
    quick: true
  },
  spread: {
    title: 'order, spread',
    next: spread,
    targets: { hand: { sqlite: 2, postgresql: 3 }, net: { sqlite: 2.5, postgresql: 4 }, prisma: 8 },
    inserts: ['orders']
  },
  message: {
    title: 'create a message',
    next: (random) => ({ method: 'POST', path: '/messages', body: { message: `Hello ${any(random, 1e6)}` } }),
    targets: { hand: { sqlite: 1.3, postgresql: 2.5 }, net: { sqlite: 1.6, postgresql: 3 }, prisma: 3.5 },
    inserts: ['messages']
  },
  mixed: {
    title: 'mixed',
    next (random, pets) {
      const part = random() * 100
      if (part < 70) return read(random, pets)
      if (part < 85) return list(random, pets)
      return part < 95 ? spread(random, pets) : create(random)
    },
    targets: { hand: { sqlite: 1.1, postgresql: 1.5 }, prisma: 3.5 },
    inserts: ['pets', 'orders']
  }
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
export function requestText ({ method, path, body }: Exchange, key: string): string {
  const head = `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n`
  if (body === undefined) return `${head}\r\n`
  const text = JSON.stringify(body)
  return `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}
