import { DatabaseUnavailable } from '../errors.ts'
import { OperationalError } from '../operational-error.ts'

/**
 * The consequence of a failed statement or transaction for its commands:
 *
 * - `unavailable`: the database is unreachable, full, locked or too slow. The outcome is unknown, so the service does
 *   not retry.
 * - `conflict`: the database rolled the transaction back because of another transaction. The service retries.
 * - `statement error`: the statements themselves failed (a foreign key, a CHECK, a defect).
 */
export type ErrorKind = 'unavailable' | 'conflict' | 'statement error'

/**
 * serialization_failure, deadlock_detected, lock_not_available, and feature_not_supported: the result of a prepared
 * statement has other types since an ALTER TABLE. The connection prepares it anew.
 */
const CONFLICTS = new Set(['40001', '40P01', '55P03', '0A000'])

/**
 * PostgreSQL: connection exception, insufficient resources, operator intervention (57014 is statement_timeout), system
 * error, and read_only_sql_transaction: after a failover, the server accepts reads only.
 */
const UNAVAILABLE = /^((08|53|57|58)[0-9A-Z]{3}|25006)$/

/** The code of all errors of SQLite. */
const SQLITE = 'ERR_SQLITE_ERROR'

/**
 * SQLite: BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL and NOTADB, by their messages: `all` of
 * @photostructure/sqlite 1.2 reports no result code. None of the messages has a value of a client.
 */
const UNAVAILABLE_SQLITE = new RegExp(`^${SQLITE} .*(${[
  'database( table| schema)? is locked', 'attempt to write a readonly database', 'disk I/O error',
  'database disk image is malformed', 'malformed database schema', 'database or disk is full',
  'unable to open database', 'locking protocol', 'file is not a database'
].join('|')})`)

/** PostgreSQL: insufficient_privilege. The role has lost a right, mostly for one table. */
const NO_RIGHT = '42501'

/** PostgreSQL: too_many_connections. The server, or this user, has no connection left. */
export const TOO_MANY_CONNECTIONS = '53300'

/**
 * A server that cannot be reached, or whose connection was lost: codes of Node, and plain errors of node-postgres
 * without a code.
 */
const UNREACHABLE = /\b(E(CONN|HOST|NET|AI_)[A-Z]+|EPIPE|ETIMEDOUT|ENOTFOUND)\b|connection terminated|not queryable/i

export function classifyError (error: unknown): ErrorKind {
  // A new connection that cannot serve: its schema is gone.
  if (error instanceof DatabaseUnavailable || error instanceof OperationalError) return 'unavailable'
  const code = codeOf(error)
  if (CONFLICTS.has(code)) return 'conflict'
  const text = `${code} ${(error as Error | undefined)?.message}`
  const isUnavailable = UNAVAILABLE.test(code) || [UNREACHABLE, UNAVAILABLE_SQLITE].some((sign) => sign.test(text))
  return isUnavailable ? 'unavailable' : 'statement error'
}

/** Returns the error for those who wait for a statement or a transaction that failed. */
export function failureOf (error: unknown): unknown {
  const isOfStatement = classifyError(error) === 'statement error' && codeOf(error) !== NO_RIGHT
  return isOfStatement ? error : new DatabaseUnavailable({ cause: error })
}

/** Returns the code of an error; empty without one. */
function codeOf (error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** Returns true if another process holds SQLite's lock. */
export function isLocked (error: unknown): boolean {
  return codeOf(error) === SQLITE && (error as Error).message.startsWith('database is locked')
}

/**
 * Returns the result of `work`, or throws `DatabaseUnavailable` after `ms` milliseconds. Otherwise, requests on a
 * connection that no longer responds would wait forever.
 */
export async function withDeadline<T> (work: Promise<T>, ms: number): Promise<T> {
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => { reject(new DatabaseUnavailable()) }, ms)
    work.then(resolve, reject).finally(() => { clearTimeout(timer) })
  })
}
