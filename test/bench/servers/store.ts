/** What the routes of hand and prisma need of a database. Answers may come at once or later. */
export interface Store {
  findKey: (hash: string) => Eventually<Key | undefined>
  /** Notes the hour in which a key was used. */
  markKeyUsed: (key: number, at: string) => Eventually<unknown>
  findPet: (account: number, id: number) => Eventually<StoredPet | undefined>
  /** By id, from after one on. */
  listPets: (account: number, after: number, limit: number, status?: PetStatus) => Eventually<Pet[]>
  createPet: (account: number, pet: NewPet) => Eventually<Pet | Refusal>
  placeOrder: (account: number, order: NewOrder) => Eventually<Order | Refusal>
  createMessage: (account: number, message: string) => Eventually<Message>
  /** Delivers messages that wait for no webhook, so many at most; how many they were. */
  settleMessages: (limit: number) => Eventually<number>
  close: () => Eventually<unknown>
}

export type Eventually<T> = T | Promise<T>
export type PetStatus = 'available' | 'pending' | 'sold'

export interface Key { account: number, key: number, readOnly: boolean, expiresAt: string | null, lastUsedAt: string | null }
export interface NewPet { name: string, categoryId: number, status?: PetStatus }
export interface Pet { id: number, name: string, categoryId: number, status: PetStatus }
export interface StoredPet extends Pet { version: number }
export interface NewOrder { petId: number, quantity?: number, complete?: boolean }
export interface Order { id: number, petId: number, quantity: number, complete: boolean }
export interface Message { id: string, message: string, status: 'queued', createdAt: string }

/** Why a write was refused: the code of a 409. */
export type Refusal = 'unknown_category' | 'unknown_pet' | 'pet_not_available' | 'insufficient_stock'

/** Why an order was refused, from the pet and its stock as they are. */
export function refusalOf (pet: { status: string, quantity: number | null } | undefined): Refusal {
  if (pet === undefined) return 'unknown_pet'
  return pet.status === 'available' ? 'insufficient_stock' : 'pet_not_available'
}
