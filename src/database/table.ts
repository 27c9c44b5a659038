import type { InputType } from './dialect.ts'

/** How values of a column are sent: as JSON types, as instants (`time`) or as members of a PostgreSQL enum. */
export type ColumnType = Exclude<InputType, 'json' | 'ordinality'> | 'time' | { enum: string }

export interface Column {
  /** Its name in the database. */
  name: string
  type: ColumnType
  isNullable?: boolean
  default?: string | number | boolean
  /** The name of the table whose ids it has, if that is not the account's. */
  references?: string
}

/**
 * The table of a Prisma model. Its rows are objects with the names of the model's fields: ids and counts are numbers,
 * instants are RFC 3339 texts in UTC with milliseconds.
 */
export interface Table<Row extends object = object> {
  name: string
  /** The field of the primary key; the last one, where the key has several. */
  id: string
  /** The field that orders the rows of an account: the one after the account in a primary key that has both. */
  order: string
  /** Its rows do not count for the stored bytes of their account. */
  isUncounted?: boolean
  /** When an account is deleted, the ids of its rows are announced on the channel with the name of the table. */
  isAnnounced?: boolean
  /** The columns by field, without those that only the database writes. */
  columns: Record<string, Column>
  /** The fields of each index of the model. */
  indexes: string[][]
  /** Gives `Row` its place in the type. It has no value. */
  row?: Row
}

/** Returns a row with all columns: those without a value get the default of the model, or null. */
export function completeRow ({ columns }: Table, fields: object): { [field: string]: unknown } {
  const given = fields as { [field: string]: unknown }
  const row: { [field: string]: unknown } = {}
  for (const field in columns) row[field] = given[field] ?? columns[field]!.default ?? null
  return row
}

export function columnOf ({ columns, name }: Table, field: string): string {
  const column = columns[field]
  if (column === undefined) throw new Error(`${name} has no field ${field}`)
  return column.name
}

export function idOf (table: Table): string {
  return columnOf(table, table.id)
}

/** Returns how values of a column are sent in JSON. */
export function inputType ({ type }: Column): Exclude<ColumnType, 'time' | object> {
  return typeof type === 'object' || type === 'time' ? 'text' : type
}
