import { createHash } from 'node:crypto'
import type { Read } from '../database/reads/query.ts'
import { recordsOf } from './row-records.ts'
import type { StoreRow } from './row-schemas.ts'
import { rowsOfStore } from './row-slices.ts'
import type { StoreCounts, StoreState } from './schemas.ts'

/** Returns what identifies the state of a store. @throws StoreTooLarge */
export async function stateOf (read: Read, account: number): Promise<StoreState> {
  const hash = createHash('sha256')
  const contentHash = createHash('sha256')
  const counts: StoreCounts = { categories: 0, pets: 0, inventory: 0, orders: 0, messages: 0 }
  const anonymize = createAnonymizer()
  for await (const { row, version, counted } of recordsOf(rowsOfStore(read, account))) {
    counts[counted]++
    hash.update(sorted({ ...row, version }))
    contentHash.update(sorted(anonymize(row, counts[counted])))
  }
  return { hash: hash.digest('hex'), contentHash: contentHash.digest('hex'), counts }
}

/** Returns a record as a line of JSON whose members are sorted by name. */
function sorted (record: object): string {
  return `${JSON.stringify(record, Object.keys(record).sort())}\n`
}

/**
 * Returns a function that replaces the ids of records by their positions among the records of their type, and leaves
 * out the times that the service sets. Parents must come before children.
 */
function createAnonymizer (): (row: StoreRow, position: number) => object {
  const categories = new Map<number, number>()
  const pets = new Map<number, number>()
  return (row, position) => {
    switch (row.type) {
      case 'category':
        categories.set(row.id, position)
        return { ...row, id: position }
      case 'pet':
        pets.set(row.id, position)
        return { ...row, id: position, categoryId: categories.get(row.categoryId) }
      case 'inventory':
        return { ...row, petId: pets.get(row.petId) }
      case 'order':
        return { ...row, id: position, petId: pets.get(row.petId!) }
      case 'message': {
        const { createdAt: _, ...rest } = row
        return { ...rest, id: position }
      }
    }
  }
}
