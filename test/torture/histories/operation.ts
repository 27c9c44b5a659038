import type { Timed } from './search.ts'

// What clients asked of one object of the store, and what they were answered. Ids that the service chooses are replaced
// by labels that the client chose, so that a model can predict an answer.

export type PetStatus = 'available' | 'pending' | 'sold'

/** A request on one object. An order is named by its ship date, which no other order has. */
export type Request =
  | { kind: 'create pet', name: string }
  | { kind: 'read pet' | 'read stock' | 'list orders' | 'delete pet' }
  | { kind: 'change pet', name?: string, status?: PetStatus }
  | { kind: 'count', quantity: number }
  | { kind: 'place order', order: string, quantity: number, complete: boolean }
  | { kind: 'complete order' | 'cancel order' | 'read order', order: string }
  | { kind: 'create category', name: string }
  | { kind: 'read category' | 'delete category' }
  | { kind: 'change category', name: string }
  | { kind: 'create message', message: string }
  | { kind: 'read message' }

/** The part of an answer that models predict. */
export interface Answer {
  status: number
  /** The code of an error. */
  code?: string
  /** The record, without the members that the service chooses. */
  body?: unknown
  etag?: string
  /** It is marked as the answer of an earlier request with the same Idempotency-Key. */
  replayed?: boolean
}

/** A request with its time, as its client saw it. */
export interface Operation extends Timed {
  client: number
  /** The object that it concerns. */
  object: string
  request: Request
  ifMatch?: string
  /** The Idempotency-Key. */
  key?: string
  /** Without it, the outcome is unknown: no complete answer came, or a 503. */
  answer?: Answer
}

/** An event of the feed with the labels in place of ids. */
export interface Event {
  id: number
  object: string
  type: string
  data: Record<string, unknown>
}

export const READS: ReadonlySet<Request['kind']> = new Set([
  'read pet', 'read stock', 'list orders', 'read order', 'read category', 'read message'
])

/** Returns a text that is the same for values with the same members, in any order. */
export function canonical (value: unknown): string {
  return JSON.stringify(value, (_name, inner: unknown) =>
    inner === null || typeof inner !== 'object' || Array.isArray(inner)
      ? inner
      : Object.fromEntries(Object.entries(inner).sort(([a], [b]) => a < b ? -1 : 1))) ?? ''
}
