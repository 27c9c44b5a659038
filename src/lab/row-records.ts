import type { StoredRow } from './row-slices.ts'
import type { CategoryRow, InventoryRow, MessageRow, OrderRow, PetRow, StoreRow } from './row-schemas.ts'
import type { StoreCounts } from './schemas.ts'

type Status = PetRow['status']

/** The columns of each table that records show. */
interface Columns {
  categories: Omit<CategoryRow, 'id' | 'type'>
  pets: { name: string, category_id: number, status: Status }
  inventory: { quantity: number }
  orders: { pet_id: number, quantity: number, ship_date?: string, complete: boolean }
  messages: { id: string, message: string, status: MessageRow['status'], created_at: string }
}

/** The records of each table, with their members in the order of the API. */
const RECORDS = {
  categories: (id: number, { name, description }: Columns['categories']): CategoryRow =>
    ({ type: 'category', id, name, ...description === undefined ? {} : { description } }),
  pets: (id: number, { name, category_id: categoryId, status }: Columns['pets']): PetRow =>
    ({ type: 'pet', id, name, categoryId, status }),
  inventory: (petId: number, { quantity }: Columns['inventory'], status: Status): InventoryRow =>
    ({ type: 'inventory', petId, quantity, status }),
  orders: (id: number, columns: Columns['orders']): OrderRow => {
    const { pet_id: petId, quantity, ship_date: shipDate, complete } = columns
    return { type: 'order', id, petId, quantity, ...shipDate === undefined ? {} : { shipDate }, complete }
  },
  messages: (_position: number, { id, message, status, created_at: createdAt }: Columns['messages']): MessageRow =>
    ({ type: 'message', id, message, status, createdAt })
}

export interface VersionedRecord {
  row: StoreRow
  /** The id within the table. */
  id: number
  counted: keyof StoreCounts
  version: number
}

/** Turns stored rows into records. Pets come before the inventory, whose status is theirs. */
export async function * recordsOf (rows: AsyncIterable<StoredRow>): AsyncGenerator<VersionedRecord, void> {
  const statusOf = new Map<number, Status>()
  for await (const { table: { counted }, id, columns } of rows) {
    if (counted === 'pets') statusOf.set(id, columns['status'] as Status)
    const row = RECORDS[counted](id, columns as never, statusOf.get(id)!)
    yield { row, id, counted, version: columns['version'] as number }
  }
}
