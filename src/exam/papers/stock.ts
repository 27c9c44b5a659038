import type { Client, Pet } from '../../client/client.ts'

/** Adds pets to a store, each in stock. */
export async function addPets (store: Client, count: number): Promise<Pet[]> {
  const { id: categoryId } = await store.createCategory({ name: 'Dogs' })
  return await Promise.all(Array.from({ length: count }, async (_, i) => {
    const pet = await store.createPet({ name: `Rex ${i + 1}`, categoryId })
    await store.updateInventory(pet.id, { quantity: 10 })
    return pet
  }))
}
