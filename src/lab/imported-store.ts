import { refusal, type FileRow } from './file-rows.ts'
import { STORED_TABLES, type StoredTable, type StoreRow } from './stored-tables.ts'

type RowOf<Type extends string> = Extract<StoreRow, { type: Type }>

/** The records of a file of one type, in the order of the file. */
class ImportedRecords {
  readonly rows: FileRow[]
  readonly #type: string
  readonly #positions = new Map<unknown, number>()

  /** @throws ValidationFailed if two records have the same id */
  constructor ({ type, idMember }: StoredTable, rows: readonly FileRow[]) {
    this.#type = type
    this.rows = rows.filter(({ row }) => row.type === type)
    for (const [position, { row, line }] of this.rows.entries()) {
      const id = memberOf(row, idMember)
      const other = this.#positions.get(id)
      if (other !== undefined) {
        throw refusal(line, `${idMember} is already that of the ${type} in line ${this.rows[other]!.line}`)
      }
      this.#positions.set(id, position)
    }
  }

  /** Returns the position of the record with an id of the file. */
  positionOf (id: unknown): number | undefined {
    return this.#positions.get(id)
  }

  /** Checks that a record has the id in a member of another one, unless that is absent. @throws ValidationFailed */
  requireId (line: number, member: string, id: unknown): void {
    if (id !== undefined && !this.#positions.has(id)) {
      throw refusal(line, `${member} must be the id of a ${this.#type} of the file`)
    }
  }
}

/** The records of a file by the names of their tables. They name each other by the ids of the file. */
export type ImportedStore = ReadonlyMap<string, ImportedRecords>

export function memberOf (row: StoreRow, member: string): unknown {
  return (row as Record<string, unknown>)[member]
}

/** Relates the rows of a file to each other, by the rules of the store. @throws ValidationFailed */
export function relateRows (rows: readonly FileRow[]): ImportedStore {
  const store = new Map(STORED_TABLES.map((table) => [table.name, new ImportedRecords(table, rows)]))
  for (const { name, references } of STORED_TABLES) {
    for (const [member, parent] of references) {
      const parents = store.get(parent)!
      for (const { row, line } of store.get(name)!.rows) parents.requireId(line, member, memberOf(row, member))
    }
  }
  checkStock(store)
  return store
}

/** Checks orders and inventory. @throws ValidationFailed */
function checkStock (store: ImportedStore): void {
  const [pets, inventory] = [store.get('pets')!, store.get('inventory_items')!]
  const held = new Set<unknown>()
  for (const { row, line } of store.get('orders')!.rows) {
    const { petId, complete } = row as RowOf<'order'>
    if (inventory.positionOf(petId) === undefined) {
      throw refusal(line, 'petId must be that of a pet with an inventory line')
    }
    if (complete === false) held.add(petId)
  }
  for (const { row, line } of inventory.rows) {
    const item = row as RowOf<'inventory'>
    const pet = pets.rows[pets.positionOf(item.petId)!]!
    if (item.status !== (pet.row as RowOf<'pet'>).status) {
      throw refusal(line, `status must be that of the pet in line ${pet.line}`)
    }
    checkStatus(item, line, held.has(item.petId))
  }
}

/** A stock of 0 is never available, and without an open order it is sold. */
function checkStatus ({ quantity, status }: RowOf<'inventory'>, line: number, isHeld: boolean): void {
  if (quantity > 0 || status === 'sold') return
  if (status === 'available') throw refusal(line, 'status must not be available with a quantity of 0')
  if (!isHeld) throw refusal(line, 'status must be sold with a quantity of 0 and no open order')
}
