import { DriverAdapterError } from '@prisma/driver-adapter-utils'

/**
 * Result codes of SQLite that have consequences of their own, with the start of their message. `all` of
 * @photostructure/sqlite 1.2 reports only the message.
 */
const RESULT_CODES: ReadonlyArray<[code: number, name: string, message: string]> = [
  [5, 'SQLITE_BUSY', 'database is locked'],
  [6, 'SQLITE_LOCKED', 'database table is locked'],
  [8, 'SQLITE_READONLY', 'attempt to write a readonly database'],
  [10, 'SQLITE_IOERR', 'disk I/O error'],
  [11, 'SQLITE_CORRUPT', 'database disk image is malformed'],
  [13, 'SQLITE_FULL', 'database or disk is full'],
  [14, 'SQLITE_CANTOPEN', 'unable to open database file'],
  [15, 'SQLITE_PROTOCOL', 'locking protocol'],
  [26, 'SQLITE_NOTADB', 'file is not a database']
]

/** Of the statements themselves: a missing table or column, a syntax error, a constraint that failed. */
const OTHER = [1, 'SQLITE_ERROR'] as const

/** The lower byte of an extended result code is its primary code. */
const PRIMARY_CODE = 0xff

/** An error of SQLite, as the service reads it. Prisma Client, which only reads here, gets its message. */
export class SqliteError extends DriverAdapterError {
  /** The name of the result code, such as `SQLITE_BUSY`. */
  readonly code: string

  constructor ({ message, errcode }: NativeError) {
    const [code, name] = RESULT_CODES.find(([code, , start]) => errcode === undefined
      ? message.startsWith(start)
      : code === errcode || code === (errcode & PRIMARY_CODE)) ?? OTHER
    super({ originalCode: name, originalMessage: message, kind: 'sqlite', extendedCode: errcode ?? code, message })
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
