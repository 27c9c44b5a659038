import type { DatabaseName } from '../../src/database/dialect.ts'

export interface Exchange {
  method: 'GET' | 'POST'
  path: string
  body?: object
}

/** Minimum ratios of petstore to the other servers, in requests per second and in CPU per request. */
interface Targets {
  baseline: Record<DatabaseName, number>
  /** The same after subtracting floor. It is an aim, not a requirement. */
  net?: Record<DatabaseName, number>
  prisma: number
}

/** An account that requests belong to, and the ids of its rows. Ids have no gaps. */
export interface Scope {
  key: string
  /** The id before that of the first pet, and the number of pets. */
  beforePets: number
  pets: number
  /** The id before that of the first category. There are 20. */
  beforeCategories: number
}

/** Creates a request for an account. */
type Next = (random: () => number, scope: Scope) => Exchange

export interface Workload {
  title: string
  next: Next
  targets: Targets
  /** Tables that get a row for each request. The run counts the rows. */
  inserts: string[]
  /** Whether `--quick` runs it. */
  quick?: true
  /** The store that it needs, if not the usual one. */
  shape?: 'contended'
}

/** The number of pets that orders use. Every fifth is available with enough units. */
const SPREAD = 1_000
const STATUSES = ['available', 'pending', 'sold']

/** The exponent of Zipf's law: the public yardsticks for contended writes use it. */
const ZIPF = 1.5
/** A prime that spreads the hot pets over the pages of the database. */
const SCATTER = 7_919

const any = (random: () => number, count: number): number => Math.floor(random() * count)

const read: Next = (random, { beforePets, pets }) => ({
  method: 'GET',
  path: `/pets/${beforePets + any(random, pets) + 1}`
})
/** Chooses a page anywhere in the list, so that no cache contains it. */
const list = (random: () => number, { beforePets, pets }: Scope, filter = ''): Exchange => {
  const after = beforePets + any(random, Math.max(1, pets - 200))
  return { method: 'GET', path: `/pets?${filter}limit=20&cursor=${after.toString(36)}` }
}
const category = (random: () => number, { beforeCategories }: Scope): number => beforeCategories + any(random, 20) + 1
const status = (random: () => number): string => STATUSES[any(random, 3)]!
const create: Next = (random, scope) =>
  ({ method: 'POST', path: '/pets', body: { name: `Rex ${any(random, 1e6)}`, categoryId: category(random, scope) } })
const order = (petId: number): Exchange => ({ method: 'POST', path: '/store/orders', body: { petId, quantity: 1 } })
const spread: Next = (random, { beforePets, pets }) =>
  order(beforePets + 5 * any(random, Math.min(SPREAD, Math.floor(pets / 5))) + 1)

/** The sums of the weights of Zipf's law, by the number of pets. */
const sums = new Map<number, Float64Array>()

/** Chooses a rank from 0: rank n is (n + 1) ** 1.5 times as rare as rank 0. */
function zipf (random: () => number, count: number): number {
  let sum = sums.get(count)
  if (sum === undefined) {
    sum = new Float64Array(count)
    for (let i = 0; i < count; i++) sum[i] = (sum[i - 1] ?? 0) + (i + 1) ** -ZIPF
    sums.set(count, sum)
  }
  const wanted = random() * sum[count - 1]!
  let [low, high] = [0, count - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (sum[middle]! < wanted) low = middle + 1
    else high = middle
  }
  return low
}

/** The workloads by name, with their targets. */
export const workloads: Record<string, Workload> = {
  get: {
    title: 'get one pet',
    next: read,
    targets: { baseline: { sqlite: 0.9, postgresql: 1.3 }, net: { sqlite: 1, postgresql: 1.5 }, prisma: 3.5 },
    inserts: [],
    quick: true
  },
  list: {
    title: 'list 20',
    next: list,
    targets: { baseline: { sqlite: 1.25, postgresql: 1.2 }, net: { sqlite: 1.7, postgresql: 1.4 }, prisma: 3.5 },
    inserts: [],
    quick: true
  },
  filtered: {
    title: 'list 20 by status',
    next: (random, scope) => list(random, scope, `status=${status(random)}&`),
    targets: { baseline: { sqlite: 1.25, postgresql: 1.2 }, net: { sqlite: 1.7, postgresql: 1.4 }, prisma: 3.5 },
    inserts: []
  },
  create: {
    title: 'create a pet',
    next: create,
    targets: { baseline: { sqlite: 1.3, postgresql: 2.5 }, net: { sqlite: 1.6, postgresql: 3 }, prisma: 3.5 },
    inserts: ['pets'],
    quick: true
  },
  hot: {
    title: 'order, one popular pet',
    next: (_random, { beforePets }) => order(beforePets + 1),
    targets: { baseline: { sqlite: 2, postgresql: 4 }, net: { sqlite: 2.5, postgresql: 5 }, prisma: 8 },
    inserts: ['orders'],
    quick: true
  },
  spread: {
    title: 'order, spread',
    next: spread,
    targets: { baseline: { sqlite: 2, postgresql: 3 }, net: { sqlite: 2.5, postgresql: 4 }, prisma: 8 },
    inserts: ['orders']
  },
  message: {
    title: 'create a message',
    next: (random) => ({ method: 'POST', path: '/messages', body: { message: `Hello ${any(random, 1e6)}` } }),
    targets: { baseline: { sqlite: 1.3, postgresql: 2.5 }, net: { sqlite: 1.6, postgresql: 3 }, prisma: 3.5 },
    inserts: ['messages']
  },
  mixed: {
    title: 'mixed',
    next (random, scope) {
      const part = random() * 100
      if (part < 70) return read(random, scope)
      if (part < 85) return list(random, scope)
      return part < 95 ? spread(random, scope) : create(random, scope)
    },
    targets: { baseline: { sqlite: 1.1, postgresql: 1.5 }, prisma: 3.5 },
    inserts: ['pets', 'orders']
  },
  uniform: {
    title: 'order, 100,000 pets',
    next: (random, { beforePets, pets }) => order(beforePets + any(random, pets) + 1),
    targets: { baseline: { sqlite: 2, postgresql: 3 }, prisma: 8 },
    inserts: ['orders'],
    shape: 'contended'
  },
  zipf: {
    title: 'order, 100,000 pets by Zipf',
    next: (random, { beforePets, pets }) => order(beforePets + (zipf(random, pets) * SCATTER) % pets + 1),
    targets: { baseline: { sqlite: 2, postgresql: 4 }, prisma: 8 },
    inserts: ['orders'],
    shape: 'contended'
  }
}

/** The requests of other sections of the benchmark, by name. They have no targets. */
const others: Record<string, Next> = {
  livez: () => ({ method: 'GET', path: '/livez' }),
  categoryAndStatus: (random, scope) =>
    list(random, scope, `categoryId=${category(random, scope)}&status=${status(random)}&`),
  inventory: (random) => ({ method: 'GET', path: `/inventory?status=${status(random)}&limit=20` }),
  orders: (random) => ({ method: 'GET', path: `/store/orders?complete=${random() < 0.5}&limit=20` })
}

/** Returns the function that creates the requests of a name. */
export function requestsOf (name: string): Next {
  return workloads[name]?.next ?? others[name]!
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
