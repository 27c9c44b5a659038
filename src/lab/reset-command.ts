import type { Command } from '../database/group-commit/command.ts'
import { inSequence, type Transaction } from '../database/group-commit/transaction.ts'
import { categoryTable } from '../categories/queries.ts'
import { inventoryTable } from '../inventory/queries.ts'
import { orderTable } from '../orders/queries.ts'
import { petTable } from '../pets/queries.ts'
import { StoreTooLarge } from './errors.ts'
import { createSample, type Sample } from './sample-store.ts'
import { storeEvents, type ResetStore, type StoreCounts, type NewStoreReset } from './schemas.ts'
import { countingBytes, deleteOtherRows, exceedsLimit, STORE_LIMIT } from './store-rows.ts'

const EMPTY: StoreCounts = { categories: 0, pets: 0, inventory: 0, orders: 0, messages: 0 }

/** Empties a store, and fills it with the records of a sample. */
export const resetStore: Command<{ account: number, reset: NewStoreReset }, ResetStore> = {
  name: 'resetStore',
  stores: true,
  runsAlone: true,
  locksAccount: true,
  run: async (tx, inputs) => await inSequence(inputs, async ({ account, reset: { sample } }) => {
    if (await exceedsLimit(tx, account)) return new StoreTooLarge(STORE_LIMIT)
    const counts = await countingBytes(tx, account, async () => {
      await deleteOtherRows(tx, account, null)
      return sample === undefined ? EMPTY : await fill(tx, account, createSample(sample.pets, sample.seed ?? 0))
    })
    const etag = `"${Object.values(counts).join('-')}"`
    return { record: { counts }, etag, events: [storeEvents.replaced({ reason: 'reset' })] }
  })
}

/** Inserts a sample. Its records name each other by their position. */
async function fill (tx: Transaction, account: number, { categories, pets, orders }: Sample): Promise<StoreCounts> {
  const categoryIds = await tx.allocateIds(categoryTable, categories.length)
  const petIds = await tx.allocateIds(petTable, pets.length)
  const orderIds = await tx.allocateIds(orderTable, orders.length)
  const counted = pets.flatMap(({ quantity }, i) =>
    quantity === undefined ? [] : [{ pet_id: petIds[i]!, account_id: account, quantity, version: 1 }])
  tx.insert(categoryTable, categories.map((category, i) => ({ id: categoryIds[i]!, account_id: account, ...category })))
  await tx.flush()
  tx.insert(petTable, pets.map(({ name, category, status }, i) =>
    ({ id: petIds[i]!, account_id: account, name, category_id: categoryIds[category]!, status })))
  await tx.flush()
  tx.insert(inventoryTable, counted)
  tx.insert(orderTable, orders.map(({ pet, quantity, complete }, i) =>
    ({ id: orderIds[i]!, account_id: account, pet_id: petIds[pet]!, quantity, complete })))
  await tx.flush()
  return {
    categories: categories.length, pets: pets.length, inventory: counted.length, orders: orders.length, messages: 0
  }
}
