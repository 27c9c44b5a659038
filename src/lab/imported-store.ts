import type { MessageRow, PetRow } from './row-schemas.ts'
import { refusal, type FileRow } from './file-rows.ts'

/** The records of a file in its order. They name each other by position. */
export interface ImportedStore {
  categories: Array<{ name: string, description?: string }>
  pets: Array<{ name: string, category: number, status: PetRow['status'], counted: boolean }>
  inventory: Array<{ pet: number, quantity: number }>
  orders: Array<{ pet: number, quantity: number, shipDate?: string, complete: boolean }>
  messages: Array<{ message: string, status: MessageRow['status'], createdAt: string }>
}

type RowOf<Type extends string> = Extract<FileRow, { type: Type }>

/** The records of one type, by their ids in the file. */
class Records<Row extends FileRow> {
  readonly rows: Row[]
  readonly #positions = new Map<unknown, number>()
  readonly #type: string

  /** @throws ValidationFailed if two records have the same id */
  constructor (type: Row['type'], rows: readonly FileRow[], idName: keyof Row & string) {
    this.#type = type
    this.rows = rows.filter((row): row is Row => row.type === type)
    for (const [position, row] of this.rows.entries()) {
      const other = this.#positions.get(row[idName])
      if (other !== undefined) {
        throw refusal(row.line, `${idName} is already that of the ${type} in line ${this.rows[other]!.line}`)
      }
      this.#positions.set(row[idName], position)
    }
  }

  has (id: unknown): boolean {
    return this.#positions.has(id)
  }

  /** Returns the position of the record that a member of another one names. @throws ValidationFailed */
  positionOf (line: number, name: string, id: unknown): number {
    const position = this.#positions.get(id)
    if (position === undefined) throw refusal(line, `${name} must be the id of a ${this.#type} of the file`)
    return position
  }
}

/** Relates the rows of a file to each other, by the rules of the store. @throws ValidationFailed */
export function relateRows (rows: readonly FileRow[]): ImportedStore {
  const categories = new Records<RowOf<'category'>>('category', rows, 'id')
  const pets = new Records<RowOf<'pet'>>('pet', rows, 'id')
  const inventory = new Records<RowOf<'inventory'>>('inventory', rows, 'petId')
  const orders = new Records<RowOf<'order'>>('order', rows, 'id')
  const messages = new Records<RowOf<'message'>>('message', rows, 'id')
  const held = new Set<unknown>()
  for (const { petId, complete, line } of orders.rows) {
    pets.positionOf(line, 'petId', petId)
    if (!inventory.has(petId)) throw refusal(line, 'petId must be that of a pet with an inventory line')
    if (complete === false) held.add(petId)
  }
  return {
    categories: categories.rows.map(({ name, description }) =>
      ({ name, ...description === undefined ? {} : { description } })),
    pets: pets.rows.map(({ id, name, categoryId, status, line }) => ({
      name, category: categories.positionOf(line, 'categoryId', categoryId), status, counted: inventory.has(id)
    })),
    inventory: inventory.rows.map((row) => {
      const pet = pets.positionOf(row.line, 'petId', row.petId)
      checkStatus(row, pets.rows[pet]!, held.has(row.petId))
      return { pet, quantity: row.quantity }
    }),
    orders: orders.rows.map(({ petId, quantity, shipDate, complete, line }) => ({
      pet: pets.positionOf(line, 'petId', petId),
      quantity: quantity!,
      ...shipDate === undefined ? {} : { shipDate: instant(shipDate) },
      complete: complete!
    })),
    messages: messages.rows.map(({ message, status, createdAt }) =>
      ({ message, status, createdAt: instant(createdAt) }))
  }
}

/** A stock of 0 is never available, and without an open order it is sold. */
function checkStatus ({ quantity, status, line }: RowOf<'inventory'>, pet: RowOf<'pet'>, isHeld: boolean): void {
  if (status !== pet.status) throw refusal(line, `status must be that of the pet in line ${pet.line}`)
  if (quantity > 0 || status === 'sold') return
  if (status === 'available') throw refusal(line, 'status must not be available with a quantity of 0')
  if (!isHeld) throw refusal(line, 'status must be sold with a quantity of 0 and no open order')
}

/** Returns an RFC 3339 time in UTC, cut to milliseconds. */
function instant (text: string): string {
  return new Date(text).toISOString()
}
