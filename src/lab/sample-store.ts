import { reserveStock, setStatus, setStock, type Stock } from '../pets/rules.ts'
import { ANIMALS } from '../pets/sample-data.ts'
import { randomAt } from './rules.ts'

export interface Sample {
  categories: Array<{ name: string, description: string }>
  /** `category` is a position in `categories`. */
  pets: Array<Stock & { name: string, category: number }>
  /** `pet` is a position in `pets`. */
  orders: Array<{ pet: number, quantity: number, complete: boolean }>
}

/** A share of the pets is never counted, and a share of those in stock is on hold. */
const UNCOUNTED_SHARE = 0.1
const ON_HOLD_SHARE = 0.1

/** Number of orders for each pet, on average. */
const ORDERS_PER_PET = 0.3

const MAX_UNITS = 40
const MAX_ORDERED = 3

/** Returns the records of a store. They follow the rules of the store, and the same seed gives the same records. */
export function createSample (petCount: number, seed: number): Sample {
  const random = createRandom(seed)
  const upTo = (limit: number): number => Math.floor(random() * limit)
  const names = ANIMALS.flatMap(({ pets }, category) => pets.map(([name]) => ({ name, category })))
  const stocks: Stock[] = []
  const pets = Array.from({ length: petCount }, (_, i) => {
    const { name, category } = names[upTo(names.length)]!
    const uncounted: Stock = { status: 'available', quantity: undefined, open: 0 }
    const counted = random() < UNCOUNTED_SHARE ? uncounted : setStock(uncounted, upTo(MAX_UNITS + 1))
    const held = random() < ON_HOLD_SHARE && counted.status === 'available' ? setStatus(counted, 'pending') : undefined
    stocks.push(held ?? counted)
    return { name: `${name} ${i + 1}`, category }
  })
  const orders: Sample['orders'] = []
  for (let i = 0; i < Math.round(petCount * ORDERS_PER_PET); i++) {
    const pet = upTo(petCount)
    const quantity = 1 + upTo(MAX_ORDERED)
    const complete = random() < 0.5
    const left = reserveStock(stocks[pet]!, quantity, complete)
    if (typeof left === 'string') continue
    stocks[pet] = left
    orders.push({ pet, quantity, complete })
  }
  return {
    categories: ANIMALS.map(({ name, description }) => ({ name, description })),
    pets: pets.map((pet, i) => ({ ...pet, ...stocks[i]! })),
    orders
  }
}

/** Returns a generator of numbers from 0 to 1. */
function createRandom (seed: number): () => number {
  let n = 0
  return () => randomAt(seed, n++)
}
