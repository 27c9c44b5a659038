import { PreconditionFailed, IdempotencyKeyReused, publicCode } from '../../../src/errors.ts'
import { UnknownCategory } from '../../../src/categories/errors.ts'
import { InsufficientStock, OrderAlreadyShipped, OrderNotFound } from '../../../src/orders/errors.ts'
import { PetNotAvailable, PetNotFound, UnknownPet } from '../../../src/pets/errors.ts'
import { Replay, type Idempotency, type StoredPet } from './store.ts'

/** A refused request. Its body equals petstore's. */
export class Refusal {
  readonly status: number
  readonly body: { code: string, message: string, status: number }

  constructor (error: { code: string, message: string, statusCode?: number | undefined }) {
    this.status = error.statusCode!
    this.body = { code: publicCode(error), message: error.message, status: this.status }
  }
}

// Made once, because an error costs a stack trace.
export const unknownCategory = new Refusal(new UnknownCategory())
export const petNotFound = new Refusal(new PetNotFound())
export const orderNotFound = new Refusal(new OrderNotFound())
export const preconditionFailed = new Refusal(new PreconditionFailed('If-Match'))
const orderAlreadyShipped = new Refusal(new OrderAlreadyShipped('cancelled'))
const unknownPet = new Refusal(new UnknownPet())
const keyReused = new Refusal(new IdempotencyKeyReused())
const notAvailable: Record<string, Refusal> = {
  pending: new Refusal(new PetNotAvailable('pending')), sold: new Refusal(new PetNotAvailable('sold'))
}

/** Returns why an order was refused, from the current pet and its stock. */
export function refusalOfOrder (
  pet: { status: string, quantity: number | null } | undefined, ordered: number
): Refusal {
  if (pet === undefined) return unknownPet
  return notAvailable[pet.status] ?? new Refusal(new InsufficientStock(
    `The pet has ${pet.quantity} in stock, fewer than the ${ordered} ordered`
  ))
}

/** Returns the pet if a rename changed nothing because it has the name, or why the rename was refused. */
export function unchanged (pet: StoredPet | undefined, versions: number[] | undefined): StoredPet | Refusal {
  if (pet === undefined) return petNotFound
  return versions === undefined || versions.includes(pet.version) ? pet : preconditionFailed
}

/** Returns why an order was not cancelled. */
export function refusalOfCancellation (order: { complete: unknown } | undefined): Refusal | undefined {
  if (order === undefined) return orderNotFound
  return order.complete ? orderAlreadyShipped : undefined
}

/** Returns the stored response, unless the key was used for another request. */
export function replayOf<T> (
  stored: { fingerprint: string, record: string | null }, { fingerprint }: Idempotency
): Replay<T> | Refusal {
  return stored.fingerprint === fingerprint ? new Replay(stored.record!) : keyReused
}
