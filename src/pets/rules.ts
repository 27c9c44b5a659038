import type { PetStatus } from './schemas.ts'

/**
 * The rules of the store: what may happen to a pet's status and stock, as pure functions. At every
 * moment a stock of 0 is never `available`, and with no open order it is `sold`.
 */
export interface Stock {
  readonly status: PetStatus
  /** Units in stock; `undefined` for a pet that was never counted. */
  readonly quantity: number | undefined
  /** Orders of the pet that are not complete. */
  readonly open: number
}

export type PlaceRefusal = 'pet_not_available' | 'insufficient_stock'

/** Units are taken at once; an order is taken whole or refused whole. */
export function reserveStock (stock: Stock, quantity: number, complete: boolean): Stock | PlaceRefusal {
  if (stock.status !== 'available') return 'pet_not_available'
  if (stock.quantity === undefined || stock.quantity < quantity) return 'insufficient_stock'
  const left = stock.quantity - quantity
  const open = stock.open + (complete ? 0 : 1)
  return { status: left > 0 ? 'available' : emptied(open), quantity: left, open }
}

/** A count is the truth: units on the shelf are for sale, whatever held the pet before. */
export function setStock (stock: Stock, quantity: number): Stock {
  return { ...stock, quantity, status: quantity > 0 ? 'available' : emptied(stock.open) }
}

/** Completing changes no stock; the last open order of an empty stock ends the hope of units coming back. */
export function completeOrder (stock: Stock): Stock {
  const open = stock.open - 1
  return { ...stock, open, status: open === 0 && stock.quantity === 0 ? 'sold' : stock.status }
}

/** Units come back; only an empty stock becomes available by it, so a hold set by hand survives. */
export function releaseStock (stock: Stock, quantity: number): Stock {
  return {
    status: stock.quantity === 0 ? 'available' : stock.status,
    quantity: (stock.quantity ?? 0) + quantity,
    open: stock.open - 1
  }
}

/** A status set by hand, or `undefined` when the pet cannot go there. */
export function setStatus (stock: Stock, status: PetStatus): Stock | undefined {
  if (status === stock.status) return stock
  if (stock.status === 'sold') return undefined
  if (status === 'available' && stock.quantity === 0) return undefined
  return { ...stock, status }
}

function emptied (open: number): PetStatus {
  return open > 0 ? 'pending' : 'sold'
}
