/**
 * Fills a store with pets.
 *
 * @param list `[name, category, quantity]` of each pet
 * @returns the pets, in the same order
 */
export async function addPets (store, list) {
  const categories = new Map()
  const pets = []
  for (const [name, category, quantity] of list) {
    if (!categories.has(category)) categories.set(category, (await store.createCategory({ name: category })).id)
    const { id } = await store.createPet({ name, categoryId: categories.get(category) })
    await store.updateInventory(id, { quantity })
    pets.push({ id, name, category, quantity })
  }
  return pets
}
