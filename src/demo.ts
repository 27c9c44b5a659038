import type { FastifyInstance } from 'fastify'
import { createAccount, deleteAccount } from './accounts/store.ts'
import { createCategory } from './categories/store.ts'
import { updateInventory } from './inventory/store.ts'
import { placeOrder } from './orders/store.ts'
import { createPet, updatePet } from './pets/store.ts'

/** The demo store: kinds of animals, and for each its pets with the units counted. */
const ANIMALS: Array<{ name: string, description: string, pets: Array<[name: string, units: number]> }> = [
  { name: 'Dogs', description: 'Loyal, loud and always hungry', pets: [['Rex', 1], ['Bella', 2], ['Waldi', 1], ['Luna', 1], ['Oskar', 3]] },
  { name: 'Cats', description: 'Own the place; you only pay for it', pets: [['Minka', 1], ['Felix', 2], ['Tiger', 1], ['Cleo', 0]] },
  { name: 'Birds', description: 'Early risers with opinions', pets: [['Coco', 4], ['Polly', 1], ['Kiwi', 6], ['Hansi', 2]] },
  { name: 'Fish', description: 'Quiet company', pets: [['Nemo', 40], ['Goldie', 25], ['Bubbles', 12], ['Neon', 120]] },
  { name: 'Small animals', description: 'Much fur, little space', pets: [['Hoppel', 3], ['Nibbles', 8], ['Speedy', 5], ['Pepper', 2]] }
]

/** What was ordered so far: pet, units, whether it was handed over. */
const ORDERS: Array<[pet: string, quantity: number, complete: boolean]> = [
  ['Nemo', 6, true], ['Kiwi', 2, true], ['Rex', 1, false], ['Neon', 20, false], ['Minka', 1, true], ['Nibbles', 2, false]
]

export interface Demo {
  /** What to print once the service listens on `origin`: the key, and a request that works when pasted. */
  greeting: (origin: string) => string
  /** Takes the store away again, when its key cannot be shown. */
  erase: () => Promise<void>
}

/**
 * Opens a small store in an empty database, by the same commands as HTTP.
 *
 * @returns `undefined` when the database already has an account
 */
export async function openDemo ({ commit, database, basePath }: FastifyInstance): Promise<Demo | undefined> {
  if (await database.reader.account.findFirst({ select: { id: true } }) !== null) return undefined

  const { record: { id: account, apiKey } } = await commit(createAccount, { account: { name: 'Demo store' } }, { account: null })
  const writer = { account }
  const pets = new Map<string, number>()
  for (const { name, description, pets: animals } of ANIMALS) {
    const { record: category } = await commit(createCategory, { account, category: { name, description } }, writer)
    for (const [name, quantity] of animals) {
      const { record: pet } = await commit(createPet, { account, pet: { name, categoryId: category.id } }, writer)
      await commit(updateInventory, { account, petId: pet.id, quantity, conditions: {} }, writer)
      pets.set(name, pet.id)
    }
  }
  for (const [name, quantity, complete] of ORDERS) {
    await commit(placeOrder, { account, order: { petId: pets.get(name)!, quantity, complete } }, writer)
  }
  await commit(updatePet, { account, petId: pets.get('Luna')!, patch: { status: 'pending' }, conditions: {} }, writer)

  return {
    erase: async () => { await commit(deleteAccount, { account, conditions: {} }, writer) },
    greeting: (origin) => `
A demo store was opened. This is its API key; it is shown only now:

  ${apiKey}

Try it:

  curl -H 'Authorization: Bearer ${apiKey}' ${origin}${basePath}/pets

`
  }
}
