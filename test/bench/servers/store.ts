/** The database interface of the routes of the baseline and prisma. Results can be synchronous or asynchronous. */
export interface Store {
  findKey: (hash: string) => Eventually<Key | undefined>
  /** Records the hour in which a key was used. */
  markKeyUsed: (key: number, at: string) => Eventually<unknown>
  findPet: (account: number, id: number) => Eventually<StoredPet | undefined>
  /** Lists pets by id, after one. */
  listPets: (account: number, after: number, limit: number, status?: PetStatus) => Eventually<Pet[]>
  createPet: (account: number, pet: NewPet) => Eventually<Pet | Refusal>
  placeOrder: (account: number, order: NewOrder) => Eventually<Order | Refusal>
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

/** Thrown when a write is refused, with the code of the 409. */
export type Refusal = 'unknown_category' | 'unknown_pet' | 'pet_not_available' | 'insufficient_stock'

/** Returns why an order was refused, from the current pet and its stock. */
export function refusalOf (pet: { status: string, quantity: number | null } | undefined): Refusal {
  if (pet === undefined) return 'unknown_pet'
  return pet.status === 'available' ? 'insufficient_stock' : 'pet_not_available'
}
