import { ColumnTypeEnum, type ArgType, type ColumnType, type SqlResultSet } from '@prisma/driver-adapter-utils'

/** A value that the driver binds. */
type Parameter = string | number | bigint | Uint8Array | null

const { Int32, Int64, Boolean, Text, DateTime, Double, Bytes } = ColumnTypeEnum

/** The types of columns by the words that declare them in the migrations. */
const DECLARED_TYPES: Record<string, ColumnType | undefined> = {
  INTEGER: Int32, BIGINT: Int64, BOOLEAN: Boolean, TEXT: Text, DATETIME: DateTime
}

/** Returns the type of a column by its declaration, or `undefined` for an expression. */
export function declaredType (declaration: string | null): ColumnType | undefined {
  return DECLARED_TYPES[declaration?.toUpperCase() ?? '']
}

/** Converts an argument of Prisma Client. The driver binds no booleans and no dates. */
export function toParameter (value: unknown, { scalarType }: ArgType): Parameter {
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value instanceof Date) return value.toISOString()
  if (typeof value !== 'string') return value as Parameter
  switch (scalarType) {
    case 'int': return Number.parseInt(value)
    case 'bigint': return BigInt(value)
    case 'datetime': return new Date(value).toISOString()
    default: return value
  }
}

/**
 * Converts the rows of a statement to Prisma's results, in place. Integers are read as bigints, because Prisma's BigInt
 * has 64 bits.
 *
 * @param declared the types of the columns as far as they are declared; the values determine the others
 */
export function toResultSet (
  columnNames: string[], declared: ReadonlyArray<ColumnType | undefined>, rows: unknown[][]
): SqlResultSet {
  const columnTypes = declared.map((type, column) => type ?? typeOfValues(rows, column))
  for (const row of rows) {
    for (let i = 0; i < row.length; i++) {
      const value = row[i]
      if (typeof value === 'bigint' || typeof value === 'number') row[i] = toResult(value, columnTypes[i]!)
    }
  }
  return { columnNames, columnTypes, rows }
}

function typeOfValues (rows: unknown[][], column: number): ColumnType {
  const value = rows.find((row) => row[column] !== null)?.[column]
  switch (typeof value) {
    case 'string': return Text
    case 'bigint': return Int64
    case 'number': return Double
    case 'object': return Bytes
    default: return Int32 // Without rows, or with NULL only, any type is right.
  }
}

function toResult (value: number | bigint, type: ColumnType): number | string {
  // Prisma Studio and older versions of Prisma store milliseconds.
  if (type === DateTime) return new Date(Number(value)).toISOString()
  if (typeof value === 'number') return type === Int32 || type === Int64 ? Math.trunc(value) : value
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value.toString()
}
