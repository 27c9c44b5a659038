import { DriverAdapterError, type MappedError } from '@prisma/driver-adapter-utils'

/**
 * Result codes of SQLite that have consequences of their own, with the start of their message. `all` of
 * @photostructure/sqlite 1.2 reports only the message.
 */
const RESULT_CODES: ReadonlyArray<[code: number, name: string, message: string]> = [
  [2067, 'SQLITE_CONSTRAINT_UNIQUE', 'UNIQUE constraint failed'],
  [1555, 'SQLITE_CONSTRAINT_PRIMARYKEY', 'UNIQUE constraint failed'],
  [1299, 'SQLITE_CONSTRAINT_NOTNULL', 'NOT NULL constraint failed'],
  [787, 'SQLITE_CONSTRAINT_FOREIGNKEY', 'FOREIGN KEY constraint failed'],
  [275, 'SQLITE_CONSTRAINT_CHECK', 'CHECK constraint failed'],
  [5, 'SQLITE_BUSY', 'database is locked'],
  [6, 'SQLITE_LOCKED', 'database table is locked'],
  [8, 'SQLITE_READONLY', 'attempt to write a readonly database'],
  [10, 'SQLITE_IOERR', 'disk I/O error'],
  [11, 'SQLITE_CORRUPT', 'database disk image is malformed'],
  [13, 'SQLITE_FULL', 'database or disk is full'],
  [14, 'SQLITE_CANTOPEN', 'unable to open database file'],
  [15, 'SQLITE_PROTOCOL', 'locking protocol'],
  [19, 'SQLITE_CONSTRAINT', 'constraint failed'],
  [26, 'SQLITE_NOTADB', 'file is not a database']
]

/** SQLITE_ERROR: a missing table or column, a syntax error. */
const OTHER = [1, 'SQLITE_ERROR'] as const

/** The lower byte of an extended result code is its primary code. */
const PRIMARY_CODE = 0xff

/** An error of SQLite, as Prisma Client and the service read it. */
export class SqliteError extends DriverAdapterError {
  /** The name of the result code, such as `SQLITE_BUSY`. */
  readonly code: string

  constructor ({ message, errcode }: NativeError) {
    const [code, name] = RESULT_CODES.find(([code, , start]) => errcode === undefined
      ? message.startsWith(start)
      : code === errcode || code === (errcode & PRIMARY_CODE)) ?? OTHER
    super({ originalCode: name, originalMessage: message, ...mapped(name, errcode ?? code, message) })
    this.message = message
    this.code = name
  }
}

/** Runs a call of the driver. @throws SqliteError if SQLite reports an error */
export function withSqliteErrors<Result> (call: () => Result): Result {
  try {
    return call()
  } catch (error) {
    throw isNative(error) ? new SqliteError(error) : error
  }
}

interface NativeError { code: string, message: string, errcode?: number }

function isNative (error: unknown): error is NativeError {
  return (error as Partial<NativeError> | undefined)?.code === 'ERR_SQLITE_ERROR'
}

function mapped (name: string, extendedCode: number, message: string): MappedError {
  const detail = message.split(': ').at(1)
  switch (name) {
    case 'SQLITE_CONSTRAINT_UNIQUE':
    case 'SQLITE_CONSTRAINT_PRIMARYKEY':
      return { kind: 'UniqueConstraintViolation', ...columnsOf(detail) }
    case 'SQLITE_CONSTRAINT_NOTNULL':
      return { kind: 'NullConstraintViolation', ...columnsOf(detail) }
    case 'SQLITE_CONSTRAINT_FOREIGNKEY':
      return { kind: 'ForeignKeyConstraintViolation', constraint: { foreignKey: {} } }
    case 'SQLITE_BUSY':
      return { kind: 'SocketTimeout' }
  }
  if (message.startsWith('no such table')) return { kind: 'TableDoesNotExist', ...detail && { table: detail } }
  const column = /no such column: (.+)|has no column named (.+)/.exec(message)
  if (column !== null) return { kind: 'ColumnNotFound', column: (column[1] ?? column[2])! }
  return { kind: 'sqlite', extendedCode, message }
}

/** Reads the columns from the end of a message, such as `pets.account_id, pets.name`. */
function columnsOf (detail: string | undefined): { constraint?: { fields: string[] }, table?: string } {
  if (detail === undefined) return {}
  const columns = detail.split(', ').map((column) => column.split('.'))
  return { constraint: { fields: columns.map((path) => path.at(-1)!) }, table: columns[0]!.slice(0, -1).join('.') }
}
