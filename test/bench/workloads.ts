import type { DatabaseName } from '../../src/database/dialect.ts'
import {
  any, cancel, category, create, keyed, list, order, patch, read, refused, spread, status, type Next
} from './requests.ts'
import type { Shape } from './seed.ts'

/** Minimum ratios of petstore to the other servers, in requests per second and in CPU per request. */
interface Targets {
  baseline: Record<DatabaseName, number>
  /** The same after subtracting floor. It is an aim, not a requirement. */
  net?: Record<DatabaseName, number>
  prisma: number
}

export interface Workload {
  title: string
  next: Next
  /** Without them, the run reports the ratios and no verdict. */
  targets?: Targets
  /** Whether it only reads. */
  isRead?: true
  /** Whether its connections need the entity tags of their pets. */
  isTagged?: true
  /** Whether `--quick` runs it. */
  quick?: true
  /** The store that it needs, if not the usual one. */
  shape?: Shape
}

/** The share of the writes of `real` that are refused. */
const REFUSED = 0.1

/** The exponent of Zipf's law: the public yardsticks for contended writes use it. */
const ZIPF = 1.5
/** A prime that spreads the hot pets over the pages of the database. */
const SCATTER = 7_919

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
    isRead: true,
    quick: true
  },
  list: {
    title: 'list 20',
    next: (random, scope) => list(random, scope),
    targets: { baseline: { sqlite: 1.25, postgresql: 1.2 }, net: { sqlite: 1.7, postgresql: 1.4 }, prisma: 3.5 },
    isRead: true,
    quick: true
  },
  filtered: {
    title: 'list 20 by status',
    next: (random, scope) => list(random, scope, `status=${status(random)}&`),
    targets: { baseline: { sqlite: 1.25, postgresql: 1.2 }, net: { sqlite: 1.7, postgresql: 1.4 }, prisma: 3.5 },
    isRead: true
  },
  create: {
    title: 'create a pet',
    next: create,
    targets: { baseline: { sqlite: 1.3, postgresql: 2.5 }, net: { sqlite: 1.6, postgresql: 3 }, prisma: 3.5 },
    quick: true
  },
  hot: {
    title: 'order, one popular pet',
    next: (_random, { beforePets }) => order(beforePets + 1),
    targets: { baseline: { sqlite: 2, postgresql: 4 }, net: { sqlite: 2.5, postgresql: 5 }, prisma: 8 },
    quick: true
  },
  spread: {
    title: 'order, spread',
    next: spread,
    targets: { baseline: { sqlite: 2, postgresql: 3 }, net: { sqlite: 2.5, postgresql: 4 }, prisma: 8 }
  },
  message: {
    title: 'create a message',
    next: (random) => ({ method: 'POST', path: '/messages', body: { message: `Hello ${any(random, 1e6)}` } }),
    targets: { baseline: { sqlite: 1.3, postgresql: 2.5 }, net: { sqlite: 1.6, postgresql: 3 }, prisma: 3.5 }
  },
  mixed: {
    title: 'mixed',
    next (random, scope, connection) {
      const part = random() * 100
      if (part < 70) return read(random, scope, connection)
      if (part < 85) return list(random, scope)
      return part < 95 ? spread(random, scope, connection) : create(random, scope, connection)
    },
    targets: { baseline: { sqlite: 1.1, postgresql: 1.5 }, prisma: 3.5 }
  },
  keyedOrder: {
    title: 'order with a key',
    next: (random, scope, connection) => keyed(spread(random, scope, connection))
  },
  keyedCreate: {
    title: 'create a pet with a key',
    next: (random, scope, connection) => keyed(create(random, scope, connection))
  },
  patch: {
    title: 'PATCH with If-Match',
    next: patch,
    isTagged: true
  },
  cancel: {
    title: 'order and cancel',
    next: cancel
  },
  real: {
    title: 'real',
    isTagged: true,
    next (random, scope, connection) {
      const part = random() * 100
      if (part < 60) return read(random, scope, connection)
      if (part < 70) return list(random, scope)
      const isRefused = random() < REFUSED
      if (part < 85) return keyed((isRefused ? refused.order : spread)(random, scope, connection))
      if (part < 95) return keyed((isRefused ? refused.create : create)(random, scope, connection))
      return (isRefused ? refused.patch : patch)(random, scope, connection)
    }
  },
  webhook: {
    title: 'order, one webhook',
    next: spread,
    shape: 'webhook'
  },
  uniform: {
    title: 'order, 100,000 pets',
    next: (random, { beforePets, pets }) => order(beforePets + any(random, pets) + 1),
    targets: { baseline: { sqlite: 2, postgresql: 3 }, prisma: 8 },
    shape: 'contended'
  },
  zipf: {
    title: 'order, 100,000 pets by Zipf',
    next: (random, { beforePets, pets }) => order(beforePets + (zipf(random, pets) * SCATTER) % pets + 1),
    targets: { baseline: { sqlite: 2, postgresql: 4 }, prisma: 8 },
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

/** The shapes of the stores that workloads are measured on, one after the other. */
export const MEASURED_SHAPES: readonly Shape[] = ['usual', 'webhook', 'contended']

/** Returns the shape of the store that a workload needs. */
export function shapeOf (name: string): Shape {
  return workloads[name]!.shape ?? 'usual'
}
