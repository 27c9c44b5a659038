import type { InputType } from './dialect.ts'

/** How values of a column are sent: as JSON types, as instants (`time`) or as members of a PostgreSQL enum. */
export type ModelColumnType = Exclude<InputType, 'json' | 'ordinality'> | 'time' | { enum: string }

export interface ModelColumn {
  /** Its name in the database. */
  name: string
  type: ModelColumnType
  default?: string | number | boolean
}

/**
 * The table of a Prisma model. Its rows are objects with the names of the model's fields: ids and counts are numbers,
 * instants are RFC 3339 texts in UTC with milliseconds.
 */
export interface ModelTable<Row extends object = object> {
  name: string
  /** The field of the primary key; beside the account, where the key is made of both. */
  id: string
  /** Its rows do not count for the stored bytes of their account. */
  isUncounted?: boolean
  /** The columns by field, without those that only the database writes. */
  columns: Record<string, ModelColumn>
  /** Gives `Row` its place in the type. It has no value. */
  row?: Row
}

/**
 * Returns a table with the type of its rows: `table<PetRow>()({ … })`.
 *
 * @public the generated tables use it
 */
export function table<Row extends object> (): (definition: Omit<ModelTable<Row>, 'row'>) => ModelTable<Row> {
  return (definition) => definition
}
