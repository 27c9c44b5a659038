import type { InputType } from './dialect.ts'

/** How values of a column are sent: as JSON types, as instants (`time`) or as members of a PostgreSQL enum. */
export type ColumnType = InputType | 'time' | { enum: string }

/** A table whose rows belong to accounts, by their column `account_id`. */
export interface Table {
  name: string
  /** The primary key, beside the account where the key is made of both. */
  id: string
  /** The type of the primary key: `bigint` by default. */
  idType?: 'bigint' | 'text'
  /** The columns that inserts set, beside `id`. */
  columns: Record<string, ColumnType>
  /** The channel on which the ids of its rows are announced when their account is deleted. */
  channel?: string
}
