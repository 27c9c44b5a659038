import type { Refusal } from './refusals.ts'

/** The database interface of the routes of the baseline and prisma. Results can be synchronous or asynchronous. */
export interface Store {
  findKey: (hash: string) => Eventually<Key | undefined>
  /** Records the hour in which a key was used. */
  markKeyUsed: (key: number, at: string) => Eventually<unknown>
  findPet: (account: number, id: number) => Eventually<StoredPet | undefined>
  /** Lists pets by id, after one. */
  listPets: (account: number, after: number, limit: number, status?: PetStatus) => Eventually<Pet[]>
  createPet: (account: number, pet: NewPet, idempotency?: Idempotency) => Eventually<Written<Pet>>
  /** Renames a pet. If `versions` is given, the pet must have one of them. */
  renamePet: (
    account: number, id: number, name: string, versions: number[] | undefined
  ) => Eventually<StoredPet | Refusal>
  placeOrder: (account: number, order: NewOrder, idempotency?: Idempotency) => Eventually<Written<Order>>
  cancelOrder: (account: number, id: number) => Eventually<Refusal | undefined>
  createMessage: (account: number, message: string) => Eventually<Message>
  /** Delivers messages without a webhook, up to a limit. @returns their number */
  settleMessages: (limit: number) => Eventually<number>
  close: () => Eventually<unknown>
}

export type Eventually<T> = T | Promise<T>
export type PetStatus = 'available' | 'pending' | 'sold'

export interface Key {
  account: number
  key: number
  readOnly: boolean
  expiresAt: string | null
  lastUsedAt: string | null
}
export interface NewPet { name: string, categoryId: number, status?: PetStatus }
export interface Pet { id: number, name: string, categoryId: number, status: PetStatus }
export interface StoredPet extends Pet { version: number }
export interface NewOrder { petId: number, quantity?: number, complete?: boolean }
export interface Order { id: number, petId: number, quantity: number, complete: boolean }
export interface Message { id: string, message: string, status: 'queued', createdAt: string }

/** The Idempotency-Key of a write, and what identifies its request. */
export interface Idempotency { key: string, fingerprint: string }

/** How long the response to a write with an Idempotency-Key is stored. */
export const RECORD_MS = 24 * 60 * 60 * 1_000
/** How long a delivery is tried. */
export const DELIVERY_MS = 24 * 60 * 60 * 1_000

/** The response to an earlier request with the same Idempotency-Key. */
export class Replay<T> {
  readonly record: T

  constructor (json: string) {
    this.record = JSON.parse(json) as T
  }
}

export type Written<T> = T | Replay<T> | Refusal

/** Whether the store has webhooks. Only then, events are looked up for them. */
export const hasWebhooks = process.env['WEBHOOKS'] === 'true'
