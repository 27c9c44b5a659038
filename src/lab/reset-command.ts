import type { Command } from '../database/group-commit/command.ts'
import type { Transaction } from '../database/group-commit/transaction.ts'
import * as tables from '../generated/tables.ts'
import { StoreTooLarge } from './errors.ts'
import { createSample, type Sample } from './sample-store.ts'
import { storeEvents, type ResetStore, type NewStoreReset } from './schemas.ts'
import { countingBytes, deleteOtherRows, isTooLarge, sizeOf, STORE_LIMIT } from './store-rows.ts'
import { countsOf, type StoreCounts } from './stored-tables.ts'

const EMPTY = countsOf(() => 0)

/** Empties a store, and fills it with the records of a sample. An account that stores its limit can only empty it. */
export const resetStore: Command<{ account: number, reset: NewStoreReset }, ResetStore> = {
  name: 'resetStore',
  runsAlone: true,
  locksAccount: true,
  run: async (tx, { account, reset: { sample } }) => {
    const size = await sizeOf(tx, account)
    if (isTooLarge(size)) return new StoreTooLarge(STORE_LIMIT)
    const onlyDeletes = sample === undefined && size.count > 0
    const refusal = onlyDeletes ? undefined : tx.storedBytes.refusalOf(account)
    if (refusal !== undefined) return refusal
    const counts = await countingBytes(tx, account, async () => {
      await deleteOtherRows(tx, account, null)
      return sample === undefined ? EMPTY : await fill(tx, account, createSample(sample.pets, sample.seed ?? 0))
    })
    const etag = `"${Object.values(counts).join('-')}"`
    return { record: { counts }, etag, events: [storeEvents.replaced({ reason: 'reset' })] }
  }
}

/** Inserts a sample. Its records name each other by their position. */
async function fill (tx: Transaction, account: number, { categories, pets, orders }: Sample): Promise<StoreCounts> {
  const categoryIds = await tx.allocateIds(tables.categories, categories.length)
  const petIds = await tx.allocateIds(tables.pets, pets.length)
  const orderIds = await tx.allocateIds(tables.orders, orders.length)
  const counted = pets.flatMap(({ quantity }, i) =>
    quantity === undefined ? [] : [{ petId: petIds[i]!, accountId: account, quantity }])
  await tx.insert(tables.categories, categories.map((category, i) =>
    ({ id: categoryIds[i]!, accountId: account, ...category })))
  await tx.insert(tables.pets, pets.map(({ name, category, status }, i) =>
    ({ id: petIds[i]!, accountId: account, name, categoryId: categoryIds[category]!, status })))
  await tx.insert(tables.inventoryItems, counted)
  await tx.insert(tables.orders, orders.map(({ pet, quantity, complete }, i) =>
    ({ id: orderIds[i]!, accountId: account, petId: petIds[pet]!, quantity, complete })))
  return {
    ...EMPTY, categories: categories.length, pets: pets.length, inventory: counted.length, orders: orders.length
  }
}
