import type { CommandSuccess } from './success.ts'
import type { Table } from '../table.ts'
import type { AccountRows } from './account-rows.ts'

/**
 * A write of a client: which rows it needs, and a function that decides about them. The function is synchronous, and
 * depends on its arguments alone: what is random is an input. It throws a coded error to refuse the write, which then
 * has changed nothing.
 */
export interface Write<Input, Record> {
  name: string
  /** Returns the rows to lock and load. Each belongs to the account of the writer, or is not found. */
  needs?: (input: Input) => Need[]
  /** The tables in each of which it creates one row at most. */
  creates?: readonly Table[]
  decide: (input: Input, rows: AccountRows) => CommandSuccess<Record>
}

export type Need =
  | { kind: 'row', table: Table, id: number | Through, lock: RowLock }
  | { kind: 'children', table: Table, where: WantedValues }
  | { kind: 'all', table: Table }

/** How rows are locked: for changes, or only to refer to them. */
export type RowLock = 'UPDATE' | 'KEY SHARE'

/** The field of a table that has the ids of rows in another one. */
export interface Link {
  table: Table
  field: string
}

/** The id is in a column of another row. */
export interface Through extends Link {
  id: number
}

/** Values by field. The first may be in a column of another row. */
export type WantedValues = { [field: string]: number | string | boolean | Through }

/** Needs a row to change it. The row stands for its children, too: a pet for its stock and its orders. */
export const forUpdate = (table: Table, id: number | Through): Need => ({ kind: 'row', table, id, lock: 'UPDATE' })

/** Needs a row to refer to it. */
export const forReference = (table: Table, id: number): Need => ({ kind: 'row', table, id, lock: 'KEY SHARE' })

/** The id in a field of the row of another table: the pet of an order. That table is locked later. */
export const through = (table: Table, id: number, field: string): Through => ({ table, id, field })

/** Needs to know whether there are rows with some values. A row that the write needs for update stands for them. */
export const children = (table: Table, where: WantedValues): Need => ({ kind: 'children', table, where })

/** Needs all rows of the account, locked for changes, in a table that has few. */
export const all = (table: Table): Need => ({ kind: 'all', table })
