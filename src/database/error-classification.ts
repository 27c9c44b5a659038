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
 * PostgreSQL: insufficient resources, operator intervention (57014 is statement_timeout), system error, connection
 * exception.
 */
const UNAVAILABLE_CLASSES = new Set(['53', '57', '58', '08'])

/** PostgreSQL: read_only_sql_transaction. After a failover, the server accepts reads only. */
const READ_ONLY = '25006'

/** PostgreSQL: insufficient_privilege. The role has lost a right, mostly for one table. */
const NO_RIGHT = '42501'

/** PostgreSQL: too_many_connections. The server, or this user, has no connection left. */
export const TOO_MANY_CONNECTIONS = '53300'

/** SQLite: BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, PROTOCOL, NOTADB. */
const UNAVAILABLE_SQLITE = /^SQLITE_(BUSY|LOCKED|READONLY|IOERR|CORRUPT|FULL|CANTOPEN|PROTOCOL|NOTADB)/

/** Node's error codes for a server that cannot be reached, or whose connection was lost. */
const UNREACHABLE = /\b(E(CONN|HOST|NET|AI_)[A-Z]+|EPIPE|ETIMEDOUT|ENOTFOUND)\b/

/** node-postgres reports a lost or slow connection in plain errors without a code. */
const LOST_CONNECTION = new RegExp([
  'connection terminated', 'timeout exceeded', 'query read timeout', 'client has encountered a connection error',
  'not queryable'
].join('|'), 'i')

export function classifyError (error: unknown): ErrorKind {
  // A new connection that cannot serve: its schema is gone.
  if (error instanceof DatabaseUnavailable || error instanceof OperationalError) return 'unavailable'
  const { code, message } = traits(error)
  if (CONFLICTS.has(code)) return 'conflict'
  if (UNAVAILABLE_SQLITE.test(code) || code === READ_ONLY) return 'unavailable'
  if (/^[0-9A-Z]{5}$/.test(code) && UNAVAILABLE_CLASSES.has(code.slice(0, 2))) return 'unavailable'
  if (UNREACHABLE.test(`${code} ${message}`) || LOST_CONNECTION.test(message)) return 'unavailable'
  return 'statement error'
}

/** Returns the error for those who wait for a statement or a transaction that failed. */
export function failureOf (error: unknown): unknown {
  const isOfStatement = classifyError(error) === 'statement error' && traits(error).code !== NO_RIGHT
  return isOfStatement ? error : new DatabaseUnavailable({ cause: error })
}

/** Returns the first code of an error and its causes, and all of their messages. */
function traits (error: unknown): { code: string, message: string } {
  const found = { code: '', message: '' }
  for (let at = error as Nested | undefined, depth = 0; at instanceof Object && depth < 6; depth++) {
    if (typeof at.code === 'string') found.code ||= at.code
    found.message += ` ${at.message ?? ''}`
    at = at.cause
  }
  return found
}

interface Nested {
  code?: unknown
  message?: string
  cause?: Nested
}

/** Returns true if another process holds SQLite's lock. */
export function isLocked (error: unknown): boolean {
  return traits(error).code.startsWith('SQLITE_BUSY')
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
